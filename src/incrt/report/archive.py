"""What a report keeps of all that it was made from, so that it can be made again without the runs.

| file | what it holds |
|---|---|
| runs.csv | the outcomes, a line each |
| references.csv | the reference controllers |
| commands.csv | the commands that ran the studies |
| histories.npz | what charts draw of what the runs left on their way |
| episodes.npz | the episodes that charts draw |
| record.json | title, studies as they were asked for, what trained the runs, how many rows the tables have |
"""

import contextlib
import csv
import dataclasses
import io
import json
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from incrt.report.drawn import EPISODES, HISTORY, Types
from incrt.report.outcomes import (
    Command,
    Episodes,
    History,
    Material,
    Outcome,
    Reference,
    Row,
    StudyRecord,
    from_csv,
    to_csv,
)
from incrt.storage.atomic import write_together
from incrt.studies.study import comparisons

_RUNS = "runs.csv"
_REFERENCES = "references.csv"
_COMMANDS = "commands.csv"
_HISTORIES = "histories.npz"
_EPISODES = "episodes.npz"
_RECORD = "record.json"
_TABLES = (_RUNS, _REFERENCES, _COMMANDS)
_FILES = (*_TABLES, _HISTORIES, _EPISODES, _RECORD)
_SHAPE = "_shape"
_DAMAGE = (OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error, csv.Error)


def is_archive(folder: Path) -> bool:
    """Whether a folder is that of a report, and no folder of studies into which one was written."""
    return any((folder / name).exists() for name in _FILES) and not (folder / "studies").is_dir()


def write_archive(material: Material, out: Path) -> None:
    """Keep what a report was made from; of its histories and episodes as much as charts draw, and as exactly."""
    tables = (material.outcomes, material.references, material.commands)
    record = {
        "title": material.title,
        "rows": dict(zip(_TABLES, map(len, tables), strict=True)),
        "made_by": material.made_by,
        "studies": [dataclasses.asdict(study) for study in material.studies],
    }
    contents = {
        _RUNS: to_csv(material.outcomes, Outcome).encode(),
        _REFERENCES: to_csv(material.references, Reference).encode(),
        _COMMANDS: to_csv(material.commands, Command).encode(),
        _HISTORIES: _packed(material.histories, HISTORY),
        _EPISODES: _packed(material.episodes, EPISODES),
        _RECORD: (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode(),
    }
    write_together(out, contents)  # what was there before may be the only copy of some of it


def read_archive(folder: Path) -> Material:
    """What :func:`write_archive` kept; a file that is missing or damaged is refused by name."""
    with _naming(folder / _RECORD) as path:
        record = json.loads(path.read_bytes())
        title, made_by, rows = record["title"], record["made_by"], {name: record["rows"][name] for name in _TABLES}
        studies = [_study(each) for each in record["studies"]]
    outcomes = _read_rows(folder / _RUNS, Outcome, rows)
    references = _read_rows(folder / _REFERENCES, Reference, rows)
    commands = _read_rows(folder / _COMMANDS, Command, rows)
    with _naming(folder / _RUNS):
        _check_known(studies, outcomes)
        tested = Counter(each.key for each in outcomes)
        if twice := [test for test, count in tested.items() if count > 1]:
            raise ValueError(f"it has more than one row of {' '.join(map(str, twice[0])).strip()}")
    with _naming(folder / _REFERENCES):
        _check_known(studies, references)
    with _naming(folder / _HISTORIES) as path:
        histories = {name: _history(parts) for name, parts in _unpacked(path, HISTORY).items()}
    with _naming(folder / _EPISODES) as path:
        episodes = {name: Episodes(**_floats(parts)) for name, parts in _unpacked(path, EPISODES).items()}
    return Material(studies, outcomes, references, histories, episodes, made_by, commands, title)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[Path]:
    """Whatever is wrong with a file, its name stands before it."""
    try:
        yield path
    except FileNotFoundError:
        raise ValueError(f"{path} is missing, without which the report cannot be made again") from None
    except _DAMAGE as error:
        said = str(error) if isinstance(error, ValueError) else repr(error)
        raise ValueError(f"{path} is damaged: {said}") from None


def _check_known(studies: Sequence[StudyRecord], found: Sequence[Outcome] | Sequence[Reference]) -> None:
    """Rows of no study, or no variant of it, would be left out without a word."""
    known = {(study.name, study.preset, variant) for study in studies for variant in ("", *study.variants)}
    if others := {(each.study, each.preset, each.variant) for each in found} - known:
        study, preset, variant = min(others)
        raise ValueError(f"study {study!r}, preset {preset!r}, variant {variant!r}, is not in {_RECORD}")


def _read_rows(path: Path, kind: type[Row], rows: Mapping[str, int]) -> list[Row]:
    with _naming(path):
        found = from_csv(path.read_bytes().decode(), kind)
        if len(found) != rows[path.name]:
            raise ValueError(f"it has {len(found)} rows, but {_RECORD} says {rows[path.name]}")
    return found


def _study(record: Mapping[str, Any]) -> StudyRecord:
    compare = comparisons(record["compare"], record["variants"])  # a version before had one name for all, or none
    others = {"compare": compare, "conditions": dict(record["conditions"])}
    return StudyRecord(**{name: _tuples(value) for name, value in record.items()} | others)


def _tuples(value: Any) -> Any:
    """JSON has lists for tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _packed(records: Mapping[str, Any], types: Types) -> bytes:
    """Of all records each part, one behind the other, and its shapes: thousands of small arrays would take more."""
    arrays: dict[str, Any] = {"folders": np.array(list(records), "U")}
    for name, kind in types.items():
        parts = [np.asarray(getattr(record, name), kind) for record in records.values()]
        arrays[name] = np.concatenate([np.zeros(0, kind), *map(np.ravel, parts)])
        arrays[name + _SHAPE] = np.array([part.shape for part in parts], np.int32)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _unpacked(path: Path, types: Types) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """The parts of each record, by folder."""
    with zipfile.ZipFile(path) as file:
        if (name := file.testzip()) is not None:  # before numpy takes what is in it for the size of an array
            raise ValueError(f"{name} in it is not what was written")
    with np.load(path, allow_pickle=False) as arrays:
        folders = arrays["folders"].tolist()
        parts = [_split(arrays[name], arrays[name + _SHAPE]) for name in types]
    return {folder: dict(zip(types, each, strict=True)) for folder, *each in zip(folders, *parts, strict=True)}


def _split(array: npt.NDArray[Any], shapes: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    begin = 0
    for shape in shapes.tolist():
        end = begin + math.prod(shape)
        yield array[begin:end].reshape(shape)
        begin = end


def _history(parts: Mapping[str, npt.NDArray[Any]]) -> History:
    others: dict[str, Any] = {"k_init": int(parts["k_init"]), "event_actions": tuple(parts["event_actions"].tolist())}
    return History(**others, **_floats({name: part for name, part in parts.items() if name not in others}))


def _floats(parts: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    return {name: part.astype(np.float64) for name, part in parts.items()}
