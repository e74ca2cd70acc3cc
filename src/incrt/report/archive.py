"""What a report keeps of all that it was made from, so that it can be made again without the runs.

| file | what it holds |
|---|---|
| runs.csv, references.csv, commands.csv | the rows of runs, controllers and commands |
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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from incrt.config.earlier import as_now, translated_fields
from incrt.report.data import Dataset, History, StudyRecord, cell_name
from incrt.report.schema import COMMANDS, CONTROLLERS, RUN_KEY, RUNS, from_csv, to_csv
from incrt.storage.atomic import write_together
from incrt.storage.records import Episodes
from incrt.studies.study import comparisons

HISTORY_TYPES: Mapping[str, Any] = (
    {"k_init": np.int16, "steps": np.int32, "returns": np.float32}
    | {"event_steps": np.int32, "event_actions": "U5", "event_heads": np.int16}
    | {"check_steps": np.int32, "ranks": np.float32, "shares": np.float32}
)
"""As what the parts of a history are kept."""
EPISODE_TYPES: Mapping[str, npt.DTypeLike] = {field.name: np.float32 for field in dataclasses.fields(Episodes)}
"""As what the parts of episodes are kept, which is also as what a run keeps them."""
Record = TypeVar("Record", History, Episodes)
_TABLES = {"runs.csv": RUNS, "references.csv": CONTROLLERS, "commands.csv": COMMANDS}
_HISTORIES, _EPISODES, _RECORD = "histories.npz", "episodes.npz", "record.json"
_DAMAGE = (OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error, csv.Error)


def is_archive(folder: Path) -> bool:
    """Whether a folder is that of a report, and no folder of studies into which one was written."""
    files = (*_TABLES, _HISTORIES, _EPISODES, _RECORD)
    return any((folder / name).exists() for name in files) and not (folder / "studies").is_dir()


def write_archive(dataset: Dataset, out: Path) -> None:
    """Keep what a report was made from; of its histories and episodes as much as charts draw, and as exactly."""
    frames = dict(zip(_TABLES, (dataset.runs, dataset.controllers, dataset.commands), strict=True))
    record = {
        "title": dataset.title,
        "rows": {name: len(frame) for name, frame in frames.items()},
        "made_by": dataset.made_by,
        "studies": [dataclasses.asdict(study) for study in dataset.studies],
    }
    contents = {name: to_csv(frame).encode() for name, frame in frames.items()} | {
        _HISTORIES: _packed(dataset.histories, HISTORY_TYPES),
        _EPISODES: _packed(dataset.episodes, EPISODE_TYPES),
        _RECORD: (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode(),
    }
    write_together(out, contents)  # what was there before may be the only copy of some of it


def read_archive(folder: Path) -> Dataset:
    """What :func:`write_archive` kept; a file that is missing or damaged is refused by name."""
    with _naming(folder / _RECORD) as path:
        record = json.loads(path.read_bytes())
        title, made_by, rows = record["title"], record["made_by"], {name: record["rows"][name] for name in _TABLES}
        studies = [_study(each) for each in record["studies"]]
    frames = dict[str, pl.DataFrame]()
    for name, columns in _TABLES.items():
        with _naming(folder / name) as path:
            frame = from_csv(path.read_bytes().decode(), columns)
            if len(frame) != rows[name]:
                raise ValueError(f"it has {len(frame)} rows, but {_RECORD} says {rows[name]}")
            if columns is not COMMANDS:
                _check_known(studies, frame)
            if columns is RUNS and len(twice := frame.filter(frame.select(RUN_KEY).is_duplicated())):
                raise ValueError(f"it has more than one row of {' '.join(map(str, twice.select(RUN_KEY).row(0)))}")
            frames[name] = frame
    with _naming(folder / _HISTORIES) as path:
        histories = _unpacked(path, History, HISTORY_TYPES)
    with _naming(folder / _EPISODES) as path:
        episodes = _unpacked(path, Episodes, EPISODE_TYPES)
    runs, controllers, commands = frames.values()
    return Dataset(studies, runs, controllers, histories, episodes, made_by, commands, title)


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


def _check_known(studies: Sequence[StudyRecord], rows: pl.DataFrame) -> None:
    """Rows of no study, or no cell of it, would be left out without a word."""
    known = {
        (study.name, study.preset, variant, tau_z)
        for study in studies
        for variant in ("", *study.variants)
        for tau_z in study.tau_zs
    }
    if others := set(rows.select("study", "preset", "variant", "tau_z").iter_rows()) - known:
        study, preset, variant, tau_z = min(others)
        raise ValueError(f"study {study!r}, preset {preset!r}, {cell_name(variant, tau_z)}, is not in {_RECORD}")


def _study(record: Mapping[str, Any]) -> StudyRecord:
    compare = comparisons(record["compare"], record["variants"])  # a version before had one name for all, or none
    others = {
        "compare": compare,
        "conditions": {name: translated_fields(fields) for name, fields in record["conditions"].items()},
        "configuration": {name: as_now(settings) for name, settings in record["configuration"].items()},
    }
    return StudyRecord(**{name: _tuples(value) for name, value in record.items()} | others)


def _tuples(value: Any) -> Any:
    """JSON has lists for tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _packed(records: Mapping[str, Any], types: Mapping[str, npt.DTypeLike]) -> bytes:
    """Of all records each part, one behind the other, and its shapes: thousands of small arrays would take more."""
    arrays: dict[str, Any] = {"folders": np.array(list(records), "U")}
    for name, kind in types.items():
        parts = [np.asarray(getattr(record, name), kind) for record in records.values()]
        arrays[name] = np.concatenate([np.zeros(0, kind), *map(np.ravel, parts)])
        arrays[f"{name}_shape"] = np.array([part.shape for part in parts], np.int32)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _unpacked(path: Path, kind: type[Record], types: Mapping[str, npt.DTypeLike]) -> dict[str, Record]:
    """The records, by folder."""
    with zipfile.ZipFile(path) as file:
        if (name := file.testzip()) is not None:  # before numpy takes what is in it for the size of an array
            raise ValueError(f"{name} in it is not what was written")
    with np.load(path, allow_pickle=False) as arrays:
        parts = {name: _split(arrays[name], arrays[f"{name}_shape"]) for name in types}
        folders = arrays["folders"].tolist()
    return {
        folder: kind(**dict(zip(parts, each, strict=True)))
        for folder, *each in zip(folders, *parts.values(), strict=True)
    }


def _split(array: npt.NDArray[Any], shapes: npt.NDArray[Any]) -> list[Any]:
    """One part a record: words as a tuple, a single number as an integer."""
    ends = np.cumsum([math.prod(shape) for shape in shapes.tolist()], dtype=int)
    parts = [part.reshape(shape) for part, shape in zip(np.split(array, ends)[:-1], shapes.tolist(), strict=True)]
    if array.dtype.kind == "U":
        return [tuple(part.tolist()) for part in parts]
    return [part.astype(np.float64) if part.ndim else int(part) for part in parts]
