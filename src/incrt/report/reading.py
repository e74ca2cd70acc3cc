"""From a folder to what a report is made of."""

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from incrt.config import format_seeds
from incrt.report.archive import is_archive, read_archive
from incrt.report.outcomes import Episodes, History, Material, Outcome, Reference, StudyRecord
from incrt.report.selection import representative
from incrt.runs import COMPARED, is_over
from incrt.storage.json import read_json, read_lines
from incrt.studies.episodes import load_episodes
from incrt.studies.store import EPISODES, PlannedRun, Store, evaluation_file
from incrt.studies.study import Cell, Study, command_name

_FIGURES = (
    "rmse",
    "delta_pct",
    "headroom_closed",
    "max_error",
    "torque_rms",
    "torque_tv",
    "shield_active_pct",
)
_OF_COMPARED = ("rmse", "delta_pct", "headroom_closed", "max_error", "torque_rms", "torque_tv")
_LOST = 1.0
"""RMSE [rad] from which on an arm is lost: ten times what counts as success. An unstable loop goes far beyond."""


class _Logs(NamedTuple):
    """What a run wrote while it was trained."""

    history: History
    events: list[dict[str, Any]]


def read_folder(folder: Path) -> Material:
    """What a folder of studies holds, or what a report's folder keeps of one."""
    if is_archive(folder):
        return read_archive(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder" if folder.exists() else f"there is no folder {folder}")
    if not (folder / "studies").is_dir():
        hint = "; incrt evaluate is for runs of incrt train" if any(folder.glob("**/config.json")) else ""
        raise ValueError(
            f"{folder} holds no study and no report; it must be what incrt study run had as --out, "
            f"or a report's folder{hint}"
        )
    return read_material(folder)


def read_material(folder: Path) -> Material:
    """All finished runs of all studies in a folder; what cannot be read is named among what failed."""
    store = Store(folder)
    outcomes: list[Outcome] = []
    references: list[Reference] = []
    logs: dict[str, _Logs] = {}
    makers: dict[str, dict[str, Any]] = {}
    episodes: dict[str, Episodes] = {}
    studies: list[StudyRecord] = []
    for study in store.studies():
        unread: dict[str, str] = {}
        found: dict[str, list[Outcome]] = {}
        plan = store.planned(study)
        for run in plan:
            name = str(run.folder.relative_to(folder))
            with _noting(name, unread):
                if is_over(run.folder):
                    logs[name] = logs.get(name) or _read_logs(run)
                    made_by = _made_by(run.folder)
                    found[name] = _outcomes(study, run, name, logs[name])
                    makers |= {json.dumps(maker, sort_keys=True): maker for maker in made_by}
        own = [each for of_run in found.values() for each in of_run]
        episodes |= _representative_episodes(folder, study, own)
        missing: dict[str, str] = {}
        begun = {(each.variant, each.tau_z) for each in own}
        for cell in study.cells:
            place = cell.variant, cell.config.task.tau_z
            # Where no run is there yet, its controllers need not be.
            with _noting(references_of(cell_name(*place)), missing if place in begun else {}):
                references += _references(store, study, cell)
        # What was noted before may have been done since.
        done = {name for name, of_run in found.items() if len(of_run) == len(study.tests)}
        given_up = {name: why for name, why in store.failed(study).items() if name not in done}
        studies.append(_record(study, len(plan), {**given_up, **unread}, missing))
        outcomes += own
    histories = {name: each.history for name, each in logs.items()}
    made_by, title = list(makers.values()), folder.resolve().name
    commands = sorted(store.commands(), key=lambda each: each.begun)  # they are noted as they end
    return Material(studies, outcomes, references, histories, episodes, made_by, commands, title)


def cell_name(variant: str, tau_z: float) -> str:
    """How a study's record names what differs in seeds alone."""
    return f"{variant}, tau_z = {tau_z:g} s"


def references_of(cell: str) -> str:
    """How a study's record names what of it could not be read, before a colon and why."""
    return f"reference controllers of {cell}"


def command_for(name: str, preset: str, seeds: Sequence[int]) -> str:
    """How to repeat a study."""
    return f"incrt study run {command_name(name)} --preset {preset} --seeds {format_seeds(seeds)} --out DIR"


@contextlib.contextmanager
def _noting(name: str, failed: dict[str, str]) -> Iterator[None]:
    """What cannot be read of one run leaves the others be."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError) as error:
        said = str(error) if isinstance(error, ValueError) else repr(error)
        failed.setdefault(name, said if "cannot be read" in said else f"cannot be read: {said}")


def _outcomes(study: Study, run: PlannedRun, name: str, logs: _Logs) -> list[Outcome]:
    """One a test that the run has been through."""
    files = {condition: evaluation_file(run.folder, changes) for condition, changes in study.tests.items()}
    return [
        _outcome(study, run, name, condition, read_json(path), logs)
        for condition, path in files.items()
        if path.exists()
    ]


def _outcome(
    study: Study, run: PlannedRun, name: str, condition: str, figures: Mapping[str, Any], logs: _Logs
) -> Outcome:
    training = figures["training"]
    failure, guarantees, k_max = training["failure"], training["guarantees"] or {}, run.cell.config.encoder.k_max
    grows, prunes = ([each for each in logs.events if each["action"] == action] for action in ("grow", "prune"))
    full = [each["step"] for each in grows if each["k"] == k_max]
    return Outcome(
        study=study.name,
        preset=study.preset,
        variant=run.cell.variant,
        tau_z=run.cell.config.task.tau_z,
        window=run.cell.config.task.window,
        seed=run.seed,
        condition=condition,
        folder=name,
        steps=run.cell.config.sac.steps,
        failure=None if failure is None else f"step {failure['step']}: {failure['cause']}",
        success=figures["success"] and failure is None,
        **_unless_lost(figures, _FIGURES, {name: figures[f"{name}_rmse"] for name in COMPARED}),
        encoder=run.cell.config.encoder.encoder,
        k_max=k_max,
        heads=training["heads"],
        grows=len(grows),
        prunes=len(prunes),
        certificates_held=sum(bool(each["holds"]) for each in logs.events),
        last_grow=max((each["step"] for each in grows), default=None),
        saturated_at=full[-1] if full and training["heads"] == k_max else None,
        largest_grow_jump=max((_jump(each) for each in grows), default=None),
        largest_prune_jump=max((_part_of_bound(each, "jump") for each in prunes), default=None),
        worst_prune_jump=max((_part_of_bound(each, "worst_jump") for each in prunes), default=None),
        inside=guarantees.get("inside"),
        rank_settled=guarantees.get("rank_settled"),
        cumulative_holds=guarantees.get("cumulative_holds"),
        beta=_or_infinite(guarantees["beta"]) if "beta" in guarantees else None,
    )


def _unless_lost(
    figures: Mapping[str, Any], keys: Sequence[str], references: Mapping[str, float | None]
) -> dict[str, Any]:
    """Nothing of an arm that was lost, nor what compares it with one that was."""
    if _is_lost(figures["rmse"]):
        return dict.fromkeys(keys)
    found = {key: figures[key] for key in keys}
    if _is_lost(references["baseline"]):
        found["delta_pct"] = None
    if _is_lost(references["best_constant"]) or _is_lost(references["clairvoyant"]):
        found["headroom_closed"] = None
    return found


def _is_lost(rmse: float | None) -> bool:
    return rmse is None or rmse >= _LOST


def _read_logs(run: PlannedRun) -> _Logs:
    stretches, checks = (read_lines(run.folder / name) for name in ("metrics.jsonl", "events.jsonl"))
    events = [check for check in checks if check["action"] != "noop"]
    measured = [check for check in checks if check["rank"] is not None]
    history = History(
        k_init=run.cell.config.encoder.heads_at_start,
        steps=_floats([each["step"] for each in stretches]),
        returns=_floats([each["return"] for each in stretches]),
        event_steps=_floats([each["step"] for each in events]),
        event_actions=tuple(each["action"] for each in events),
        event_heads=_floats([each["k"] for each in events]),
        check_steps=_floats([each["step"] for each in measured]),
        ranks=_floats([each["rank"] for each in measured]),
        shares=_floats([each["shares"] for each in measured]).reshape(len(measured), run.cell.config.encoder.k_max),
    )
    return _Logs(history, events)


def _floats(values: Sequence[Any]) -> Any:
    return np.array(values, np.float64)  # None becomes NaN


def _jump(event: Mapping[str, Any], name: str = "jump") -> float:
    return _or_infinite(event[name])


def _or_infinite(value: float | None) -> float:
    """JSON has null for what is not finite."""
    return math.inf if value is None else float(value)


def _part_of_bound(event: Mapping[str, Any], name: str) -> float:
    jump = _jump(event, name)
    if event["bound"]:
        return jump / float(event["bound"])
    return math.inf if jump > 0 else 0.0


def _references(store: Store, study: Study, cell: Cell) -> Iterator[Reference]:
    """Of the cell's task on each test; of cells with the same task the first one's stand for all."""
    alike = [each for each in study.cells if each.config.task.tau_z == cell.config.task.tau_z]
    paths = [store.references(each.config.task, {}) for each in alike]
    if paths.index(store.references(cell.config.task, {})) != alike.index(cell):
        return
    variant = cell.variant if len(set(paths)) > 1 else ""
    for condition, changes in study.tests.items():
        path = store.references(cell.config.task, changes)
        rows = {row["controller"]: row for row in read_json(path)}
        for name, row in rows.items():
            figures = _unless_lost(row, _OF_COMPARED, {each: rows[each]["rmse"] for each in COMPARED})
            yield Reference(study.name, study.preset, variant, cell.config.task.tau_z, condition, name, **figures)


def _made_by(folder: Path) -> list[dict[str, Any]]:
    makers: list[dict[str, Any]] = read_json(folder / "config.json")["made_by"]
    return [{key: value for key, value in maker.items() if key != "from_step"} for maker in makers]


def _record(study: Study, wanted: int, failed: Mapping[str, str], missing: Mapping[str, str]) -> StudyRecord:
    cells = {cell_name(cell.variant, cell.config.task.tau_z): cell.config.to_json() for cell in study.cells}
    return StudyRecord(
        name=study.name,
        preset=study.preset,
        about=study.about,
        seeds=study.seeds,
        variants=study.variants,
        compare=study.compare,
        regimes=tuple(dict.fromkeys((cell.config.task.tau_z, cell.config.task.window) for cell in study.cells)),
        conditions=study.conditions,
        trained_by=study.trained_by,
        runs_wanted=wanted,
        failed=tuple(failed.items()),
        unread=tuple(f"{name}: {why}" for name, why in missing.items()),
        configuration=cells,
        command=command_for(study.name, study.preset, study.seeds),
    )


def _representative_episodes(folder: Path, study: Study, outcomes: Sequence[Outcome]) -> dict[str, Episodes]:
    """Of a run in the middle of each regime, of the variant that stands for the study."""
    found = {}
    variant = next(iter(study.compare.values()), study.variants[0])
    for tau_z in dict.fromkeys(each.tau_z for each in outcomes):
        cell = [each for each in outcomes if (each.variant, each.tau_z, each.condition) == (variant, tau_z, "")]
        run = representative(cell)
        if run is not None:
            with contextlib.suppress(ValueError):  # there are none, or they cannot be read: a figure less
                found[run.folder] = load_episodes(folder / run.folder / EPISODES)
    return found
