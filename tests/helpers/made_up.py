"""Made-up rows of studies, for the tests of what a report says."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from incrt.report.data import Dataset, StudyRecord
from incrt.report.schema import COMMANDS, CONTROLLERS, RUNS, Row, to_frame
from incrt.studies.study import comparisons

BASELINE = 0.13
WINDOWS = {1.0: 20, 2.0: 50, 5.0: 20}
_FOLDERS = itertools.count()


def a_run(study: str, variant: str, tau_z: float, delta: float | None, **changes: Any) -> Row:
    """A run that did as the paper's do, but for its Delta% and the changes; None: the arm did not stay finite."""
    rmse = None if delta is None else BASELINE * (1 + delta / 100)
    return {
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
        **changes,
    }


def but(row: Row, **changes: Any) -> Row:
    """The same row, but for some columns."""
    return {**row, **changes}


def altered(frame: pl.DataFrame, where: pl.Expr | bool, **changes: Any) -> pl.DataFrame:
    """The same rows, but for some columns of some of them."""
    new = {name: pl.lit(value, frame.schema[name]) for name, value in changes.items()}
    return frame.with_columns(**{name: pl.when(where).then(value).otherwise(name) for name, value in new.items()})


def sample(study: str, variant: str, tau_z: float, deltas: Sequence[float | None], **changes: Any) -> list[Row]:
    """One run for each Delta%."""
    return [a_run(study, variant, tau_z, delta, seed=42 + i, **changes) for i, delta in enumerate(deltas)]


def around(mean: float, std: float, n: int = 10) -> list[float]:
    """n values with exactly this mean and standard deviation."""
    ranks = [i - (n - 1) / 2 for i in range(n)]
    scale = std / (sum(rank**2 for rank in ranks) / (n - 1)) ** 0.5
    return [mean + scale * rank for rank in ranks]


def controllers(study: str, tau_z: float, condition: str = "") -> list[Row]:
    """Four controllers."""
    reached = {"baseline": 0.0, "best_constant": -34.0, "feedforward": -58.0, "clairvoyant": -60.0}
    place = {"study": study, "preset": "paper", "variant": "", "tau_z": tau_z, "condition": condition}
    others = {"max_error": 0.3, "torque_rms": 10.0, "torque_tv": 900.0}
    return [
        {
            **place,
            "controller": name,
            "rmse": BASELINE * (1 + delta / 100),
            "delta_pct": delta,
            "headroom_closed": -(delta + 34) / 26,
            **others,
        }
        for name, delta in reached.items()
    ]


def dataset_of(*samples: Sequence[Row], compare: str | Mapping[str, str] | None = None) -> Dataset:
    """The studies that these runs make, with the controllers of their regimes."""
    rows = [row for runs in samples for row in runs]
    studies = []
    for name in dict.fromkeys(row["study"] for row in rows):
        own = [row for row in rows if row["study"] == name]
        variants = tuple(dict.fromkeys(row["variant"] for row in own))
        studies.append(
            StudyRecord(
                name=name,
                preset="paper",
                about=f"About {name}.",
                seeds=tuple(range(42, 52)),
                variants=variants,
                compare={} if isinstance(compare, str) and compare not in variants else comparisons(compare, variants),
                regimes=tuple(dict.fromkeys((row["tau_z"], row["window"]) for row in own)),
                conditions={row["condition"]: {"words": row["condition"]} for row in own if row["condition"]},
                trained_by=(),
                runs_wanted=len({row["folder"] for row in own}),
                failed=(),
                unread=(),
                configuration={},
                command=f"incrt study run {name}",
            )
        )
    places = dict.fromkeys((row["study"], row["tau_z"], row["condition"]) for row in rows)
    beside = [row for place in places for row in controllers(*place)]
    frames = to_frame(rows, RUNS), to_frame(beside, CONTROLLERS)
    return Dataset(studies, *frames, {}, {}, [], to_frame([], COMMANDS))
