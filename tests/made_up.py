"""Made-up outcomes of studies, for the tests of what a report says."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from incrt.report.outcomes import Material, Outcome, Reference, StudyRecord
from incrt.studies.study import comparisons

BASELINE = 0.13
WINDOWS = {1.0: 20, 2.0: 50, 5.0: 20}
_FOLDERS = itertools.count()


def outcome(study: str, variant: str, tau_z: float, delta: float | None, **changes: Any) -> Outcome:
    """A run that did as the paper's do, but for its Delta% and the changes; None: the arm did not stay finite."""
    rmse = None if delta is None else BASELINE * (1 + delta / 100)
    fields: dict[str, Any] = {
        "study": study,
        "preset": "paper",
        "variant": variant,
        "tau_z": tau_z,
        "window": WINDOWS[tau_z],
        "seed": 42,
        "condition": "",
        "folder": f"cell-{next(_FOLDERS)}/seed-42",
        "steps": 50_000,
        "failure": None,
        "rmse": rmse,
        "delta_pct": delta,
        "success": rmse is not None and rmse < 0.1,
        "headroom_closed": 0.5,
        "max_error": 0.3,
        "torque_rms": 10.0,
        "torque_tv": 1000.0,
        "shield_active_pct": 0.0,
        "encoder": "runtime",
        "k_max": 8,
        "heads": 8,
        "grows": 7,
        "prunes": 0,
        "certificates_held": 7,
        "last_grow": 19_500,
        "saturated_at": 19_500,
        "largest_grow_jump": 0.0,
        "largest_prune_jump": None,
        "worst_prune_jump": None,
        "inside": True,
        "rank_settled": True,
        "cumulative_holds": True,
        "beta": 2.5,
    }
    return Outcome(**{**fields, **changes})


def sample(study: str, variant: str, tau_z: float, deltas: Sequence[float | None], **changes: Any) -> list[Outcome]:
    """One run for each Delta%."""
    return [outcome(study, variant, tau_z, delta, seed=42 + i, **changes) for i, delta in enumerate(deltas)]


def around(mean: float, std: float, n: int = 10) -> list[float]:
    """n values with exactly this mean and standard deviation."""
    ranks = [i - (n - 1) / 2 for i in range(n)]
    scale = std / (sum(rank**2 for rank in ranks) / (n - 1)) ** 0.5
    return [mean + scale * rank for rank in ranks]


def references(study: str, tau_z: float, condition: str = "") -> list[Reference]:
    """Four controllers."""
    figures = {"baseline": 0.0, "best_constant": -34.0, "feedforward": -58.0, "clairvoyant": -60.0}
    return [
        Reference(
            study=study,
            preset="paper",
            variant="",
            tau_z=tau_z,
            condition=condition,
            controller=name,
            rmse=BASELINE * (1 + delta / 100),
            delta_pct=delta,
            headroom_closed=-(delta + 34) / 26,
            max_error=0.3,
            torque_rms=10.0,
            torque_tv=900.0,
        )
        for name, delta in figures.items()
    ]


def material(*samples: Sequence[Outcome], compare: str | Mapping[str, str] | None = None) -> Material:
    """The studies that these outcomes make, with the controllers of their regimes."""
    outcomes = [each for runs in samples for each in runs]
    studies = []
    for name in dict.fromkeys(each.study for each in outcomes):
        own = [each for each in outcomes if each.study == name]
        variants = tuple(dict.fromkeys(each.variant for each in own))
        studies.append(
            StudyRecord(
                name=name,
                preset="paper",
                about=f"About {name}.",
                seeds=tuple(range(42, 52)),
                variants=variants,
                compare={} if isinstance(compare, str) and compare not in variants else comparisons(compare, variants),
                regimes=tuple(dict.fromkeys((each.tau_z, each.window) for each in own)),
                conditions={each.condition: {"words": each.condition} for each in own if each.condition},
                trained_by=(),
                runs_wanted=len({each.folder for each in own}),
                failed=(),
                unread=(),
                configuration={},
                command=f"incrt study run {name}",
            )
        )
    places = dict.fromkeys((each.study, each.tau_z, each.condition) for each in outcomes)
    return Material(studies, outcomes, [each for place in places for each in references(*place)], {}, {}, [], [])
