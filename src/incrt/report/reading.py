"""From a folder to what a report is made of."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from incrt.report.archive import is_archive, read_archive
from incrt.report.data import Dataset, History, StudyRecord, as_json, cell_name, command_for, controllers_of
from incrt.report.schema import COMMANDS, CONTROLLERS, METRICS, RUNS, Row, to_frame
from incrt.report.selection import AS_TRAINED, representative
from incrt.runs import COMPARED, is_over
from incrt.storage.json import read_json, read_lines
from incrt.storage.records import Episodes
from incrt.studies.episodes import load_episodes
from incrt.studies.store import EPISODES, PlannedRun, Store, evaluation_file
from incrt.studies.study import Cell, Study

_Event = dict[str, Any]
"""A line of a run's events.jsonl."""
_LOST = 1.0
"""RMSE [rad] from which on an arm is lost: ten times what counts as success. An unstable loop goes far beyond."""


def read_folder(folder: Path) -> Dataset:
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
    return read_studies(folder)


def read_studies(folder: Path) -> Dataset:
    """All finished runs of all studies in a folder; what cannot be read is named among what failed."""
    store = Store(folder)
    rows, controllers = [to_frame([], RUNS)], [to_frame([], CONTROLLERS)]
    logs: dict[str, tuple[History, list[_Event]]] = {}
    makers: dict[str, dict[str, Any]] = {}
    episodes: dict[str, Episodes] = {}
    studies: list[StudyRecord] = []
    for study in store.studies():
        unread, missing, found = dict[str, str](), dict[str, str](), dict[str, pl.DataFrame]()
        plan = store.planned(study)
        for run in plan:
            name = str(run.folder.relative_to(folder))
            with _noting(name, unread):
                if is_over(run.folder):
                    logs[name] = logs.get(name) or _read_logs(run)
                    made_by = _made_by(run.folder)
                    found[name] = to_frame(_rows(study, run, name, logs[name][1]), RUNS)
                    makers |= {as_json(maker): maker for maker in made_by}
        own = pl.concat([rows[0], *found.values()])
        episodes |= _representative_episodes(folder, study, own)
        begun = set(own.select("variant", "tau_z").iter_rows())
        for cell in study.cells:
            place = cell.variant, cell.config.task.tau_z
            # Where no run is there yet, its controllers need not be.
            with _noting(controllers_of(cell_name(*place)), missing if place in begun else {}):
                controllers += (to_frame([row], CONTROLLERS) for row in _controllers(store, study, cell))
        # What was noted before may have been done since.
        done = {name for name, of_run in found.items() if len(of_run) == len(study.tests)}
        given_up = {name: why for name, why in store.failed(study).items() if name not in done}
        studies.append(_record(study, len(plan), given_up | unread, missing))
        rows.append(own)
    return Dataset(
        studies,
        pl.concat(rows),
        pl.concat(controllers),
        {name: history for name, (history, _) in logs.items()},
        episodes,
        list(makers.values()),
        to_frame(map(vars, store.commands()), COMMANDS).sort("begun", maintain_order=True),  # noted as they end
        folder.resolve().name,
    )


@contextlib.contextmanager
def _noting(name: str, failed: dict[str, str]) -> Iterator[None]:
    """What cannot be read of one run leaves the others be."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError) as error:
        said = str(error) if isinstance(error, ValueError) else repr(error)
        failed.setdefault(name, said if "cannot be read" in said else f"cannot be read: {said}")


def _rows(study: Study, run: PlannedRun, name: str, events: Sequence[_Event]) -> list[Row]:
    """One a test that the run has been through."""
    config, paths = run.cell.config, {test: evaluation_file(run.folder, each) for test, each in study.tests.items()}
    known = (
        {"study": study.name, "preset": study.preset, "variant": run.cell.variant, "tau_z": config.task.tau_z}
        | {"window": config.task.window, "seed": run.seed, "folder": name, "steps": config.sac.steps}
        | {"encoder": config.encoder.encoder, "k_max": config.encoder.k_max}
        | _of_events(events, config.encoder.k_max)
    )
    found = {test: read_json(path) for test, path in paths.items() if path.exists()}
    return [{**known, "condition": test, **_of_evaluation(each)} for test, each in found.items()]


def _of_evaluation(evaluation: Mapping[str, Any]) -> Row:
    """What an evaluation says, of the test and of the training before it."""
    training = evaluation["training"]
    failure, guarantees = training["failure"], training["guarantees"] or {}
    references = {name: evaluation[f"{name}_rmse"] for name in COMPARED}
    return {
        "failure": None if failure is None else f"step {failure['step']}: {failure['cause']}",
        "success": evaluation["success"] and failure is None,
        **_unless_lost(evaluation, (*METRICS, "shield_active_pct"), references),
        "heads": training["heads"],
        **{name: guarantees.get(name) for name in ("inside", "rank_settled", "cumulative_holds")},
        "beta": _or_infinite(guarantees["beta"]) if "beta" in guarantees else None,
    }


def _of_events(events: Sequence[_Event], k_max: int) -> Row:
    grows, prunes = ([each for each in events if each["action"] == action] for action in ("grow", "prune"))
    at_cap = bool(events) and events[-1]["k"] == k_max
    return {
        "grows": len(grows),
        "prunes": len(prunes),
        "certificates_held": sum(bool(each["holds"]) for each in events),
        "last_grow": max((each["step"] for each in grows), default=None),
        "saturated_at": events[-1]["step"] if at_cap else None,
        "largest_grow_jump": max((_or_infinite(each["jump"]) for each in grows), default=None),
        "largest_prune_jump": max((_part_of_bound(each, "jump") for each in prunes), default=None),
        "worst_prune_jump": max((_part_of_bound(each, "worst_jump") for each in prunes), default=None),
    }


def _or_infinite(value: float | None) -> float:
    """JSON has null for what is not finite."""
    return math.inf if value is None else float(value)


def _part_of_bound(event: _Event, name: str) -> float:
    jump = _or_infinite(event[name])
    if event["bound"]:
        return jump / float(event["bound"])
    return math.inf if jump > 0 else 0.0


def _unless_lost(row: Mapping[str, Any], names: Sequence[str], references: Mapping[str, float | None]) -> Row:
    """Nothing of an arm that was lost, nor what compares it with one that was."""
    lost = {name for name, rmse in {"": row["rmse"], **references}.items() if rmse is None or rmse >= _LOST}
    left_out = set[str]()
    if "baseline" in lost:
        left_out.add("delta_pct")
    if lost & {"best_constant", "clairvoyant"}:
        left_out.add("headroom_closed")
    return {name: None if "" in lost or name in left_out else row[name] for name in names}


def _read_logs(run: PlannedRun) -> tuple[History, list[_Event]]:
    """What a run wrote while it was trained."""
    stretches, checks = (read_lines(run.folder / name) for name in ("metrics.jsonl", "events.jsonl"))
    events = [check for check in checks if check["action"] != "noop"]
    measured = [check for check in checks if check["rank"] is not None]

    def array(lines: Sequence[Mapping[str, Any]], name: str) -> Any:
        return np.array([line[name] for line in lines], np.float64)  # None becomes NaN

    history = History(
        k_init=run.cell.config.encoder.heads_at_start,
        steps=array(stretches, "step"),
        returns=array(stretches, "return"),
        event_steps=array(events, "step"),
        event_actions=tuple(each["action"] for each in events),
        event_heads=array(events, "k"),
        check_steps=array(measured, "step"),
        ranks=array(measured, "rank"),
        shares=array(measured, "shares").reshape(len(measured), run.cell.config.encoder.k_max),
    )
    return history, events


def _controllers(store: Store, study: Study, cell: Cell) -> Iterator[Row]:
    """Of the cell's task on each test; of cells with the same task the first one's stand for all."""
    alike = [each for each in study.cells if each.config.task.tau_z == cell.config.task.tau_z]
    paths = [store.references(each.config.task, {}) for each in alike]
    if paths.index(store.references(cell.config.task, {})) != alike.index(cell):
        return
    variant = cell.variant if len(set(paths)) > 1 else ""
    for condition, changes in study.tests.items():
        rows = {row["controller"]: row for row in read_json(store.references(cell.config.task, changes))}
        for name, row in rows.items():
            about = (study.name, study.preset, variant, cell.config.task.tau_z, condition, name)
            yield {
                **dict(zip((column.name for column in CONTROLLERS), about, strict=False)),
                **_unless_lost(row, METRICS, {each: rows[each]["rmse"] for each in COMPARED}),
            }


def _made_by(folder: Path) -> list[dict[str, Any]]:
    makers: list[dict[str, Any]] = read_json(folder / "config.json")["made_by"]
    return [{key: value for key, value in maker.items() if key != "from_step"} for maker in makers]


def _record(study: Study, wanted: int, failed: Mapping[str, str], missing: Mapping[str, str]) -> StudyRecord:
    alike = ("name", "preset", "about", "seeds", "variants", "compare", "conditions", "trained_by")
    return StudyRecord(
        **{name: getattr(study, name) for name in alike},
        regimes=tuple(dict.fromkeys((cell.config.task.tau_z, cell.config.task.window) for cell in study.cells)),
        runs_wanted=wanted,
        failed=tuple(failed.items()),
        unread=tuple(f"{name}: {why}" for name, why in missing.items()),
        configuration={cell_name(cell.variant, cell.config.task.tau_z): cell.config.to_json() for cell in study.cells},
        command=command_for(study.name, study.preset, study.seeds),
    )


def _representative_episodes(folder: Path, study: Study, rows: pl.DataFrame) -> dict[str, Episodes]:
    """Of a run in the middle of each regime, of the variant that stands for the study."""
    variant = next(iter(study.compare.values()), study.variants[0])
    cells = rows.filter(AS_TRAINED, variant=variant).partition_by("tau_z", maintain_order=True)
    found = {}
    for run in filter(None, map(representative, cells)):
        with contextlib.suppress(ValueError):  # there are none, or they cannot be read: a figure less
            found[run["folder"]] = load_episodes(folder / run["folder"] / EPISODES)
    return found
