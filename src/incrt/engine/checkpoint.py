"""Checkpoints of a run: its tensors in safetensors, the rest in JSON, and a checksum of each; nothing is pickled.

A checkpoint is a pair of files named by the step. The JSON is written last and holds the checksum of the tensors, so a
checkpoint whose JSON is sound is there whole. The two latest are kept: should the newest be damaged, the one before it
serves.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from incrt.engine.progress import Checkpoint, Failure, Progress, Run
from incrt.engine.step import start
from incrt.engine.update import Algorithm, Learner, init_learner
from incrt.heads import certificates
from incrt.heads.check import HeadsState
from incrt.storage.atomic import write_whole
from incrt.storage.json import checksum

FORMAT = 3
"""Raised when what a checkpoint holds changes."""
_WRITTEN_BY = {1: "incrt 0.1", 2: "incrt 0.2 before its release"}
"""Which version wrote an earlier format."""

_KEPT = 2
_SUFFIXES = (".safetensors", ".json")


class DamagedError(ValueError):
    """A checkpoint that cannot be used, and why."""


def save(folder: Path, identity: str, saved: Checkpoint, logs: Mapping[str, int]) -> None:
    """Add a checkpoint of the run that ``identity`` stands for; ``logs`` are the lengths of its logs at this moment."""
    progress = saved.progress
    tensors = safetensors.numpy.save(named(saved.state))
    path = folder / f"{progress.step:09d}"
    write_whole(path.with_suffix(".safetensors"), tensors)
    content = {
        "format": FORMAT,
        "run": identity,
        "tensors": hashlib.sha256(tensors).hexdigest(),
        "logs": dict(logs),
        "step": progress.step,
        "heads_state": None if progress.heads_state is None else progress.heads_state.to_json(),
        "ranks": progress.ranks,
        "certificates": [certificates.to_json(each) for each in progress.certificates],
        "failure": None if progress.failure is None else progress.failure._asdict(),
    }
    write_whole(path.with_suffix(".json"), json.dumps({"content": content, "checksum": checksum(content)}).encode())
    kept = {f"{step:09d}" for step in steps_saved(folder)[-_KEPT:]}
    for old in folder.iterdir():
        if old.suffix in _SUFFIXES and old.stem.isdigit() and old.stem not in kept:
            old.unlink()


def steps_saved(folder: Path) -> list[int]:
    """The steps of which there is a checkpoint, the newest last."""
    return sorted(int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit())


def latest(
    folder: Path, identity: str, run: Run, logs: Mapping[str, int], refuse: Callable[[str], None]
) -> tuple[Checkpoint, Mapping[str, int]] | None:
    """The newest checkpoint that is sound, and the logs' lengths then; None if there is no checkpoint.

    ``refuse`` is told of each that is not sound, and why; it is put aside. Where none is sound, it is for the user to
    give the run up.
    """
    steps = steps_saved(folder)
    for step in reversed(steps):
        path = folder / f"{step:09d}"
        try:
            found = _load(path, identity, run, logs)
        except DamagedError as error:
            refuse(f"checkpoint at step {step} in {folder} is not used: {error}")
        else:
            for worse in steps[steps.index(step) + 1 :]:
                for refused in folder.glob(f"{worse:09d}.*"):
                    refused.replace(refused.with_name(f"{refused.name}.refused"))
            return found
    if steps:
        raise ValueError(f"no checkpoint in {folder} can be used; remove {folder.parent} to start the run anew")
    return None


def newest_learner(folder: Path, algorithm: Algorithm) -> Learner | None:
    """What the newest checkpoint has learned, without the rest of the run; None where there is no checkpoint."""
    steps = steps_saved(folder)
    if not steps:
        return None
    path = folder / f"{steps[-1]:09d}.safetensors"
    try:
        tensors = safetensors.numpy.load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise DamagedError(f"{path} cannot be read: {error}") from None
    template = jax.eval_shape(partial(init_learner, algorithm), jax.random.key(0))
    learned = {name: tensor for name, tensor in tensors.items() if name.startswith("learner.")}
    found: Learner = unnamed(learned, {"learner": template})["learner"]
    return found


def _load(path: Path, identity: str, run: Run, logs: Mapping[str, int]) -> tuple[Checkpoint, Mapping[str, int]]:
    content = _read_content(path.with_suffix(".json"))
    if content["format"] != FORMAT:
        writer = _WRITTEN_BY.get(content["format"], "another version of incrt")
        raise DamagedError(f"its format is {content['format']}, that of {writer}; this version reads {FORMAT}")
    if content["run"] != identity:
        raise DamagedError("it is of another run")
    for name, length in content["logs"].items():
        if logs.get(name, 0) < length:
            raise DamagedError(f"{name} has {logs.get(name, 0)} bytes, {length} were written before it")
    try:
        tensors = path.with_suffix(".safetensors").read_bytes()
    except OSError as error:
        raise DamagedError(f"its tensors cannot be read: {error}") from None
    if hashlib.sha256(tensors).hexdigest() != content["tensors"]:
        raise DamagedError("its tensors have another checksum than when they were written")
    try:
        progress = Progress(
            run=run,
            step=content["step"],
            heads_state=None if content["heads_state"] is None else HeadsState.from_json(content["heads_state"]),
            ranks=content["ranks"],
            certificates=[certificates.from_json(each) for each in content["certificates"]],
            failure=None if content["failure"] is None else Failure(**content["failure"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"it is not as this version writes it: {error}") from None
    return Checkpoint(progress, unnamed(safetensors.numpy.load(tensors), _template(run))), content["logs"]


def _read_content(path: Path) -> Any:
    try:
        written = json.loads(path.read_bytes())
        content, expected = written["content"], written["checksum"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{path.name} cannot be read: {error}") from None
    if checksum(content) != expected:
        raise DamagedError(f"{path.name} has another checksum than when it was written")
    return content


# --- trees of tensors by name ----------------------------------------------------------------------------------------


def named(tree: Any) -> dict[str, npt.NDArray[Any]]:
    """The tree's arrays by their place in it, such as ``learner.learned.actor.mean.w``."""
    leaves, _ = jax.tree.flatten_with_path(tree)
    return {_name(path): np.asarray(leaf, order="C") for path, leaf in leaves}


def unnamed(tensors: Mapping[str, npt.NDArray[Any]], template: Any) -> Any:
    """The tree that :func:`named` took apart; ``template`` has its structure, shapes and types."""
    leaves, structure = jax.tree.flatten_with_path(template)
    wanted = {_name(path): leaf for path, leaf in leaves}
    if unlike := sorted(wanted.keys() ^ tensors.keys()):
        raise DamagedError(f"its tensors are not those of this run: {', '.join(unlike[:3])}")
    for name, leaf in wanted.items():
        found = tensors[name]
        if (found.shape, found.dtype) != (leaf.shape, leaf.dtype):
            raise DamagedError(f"{name} has shape {found.shape} {found.dtype}, {leaf.shape} {leaf.dtype} is needed")
    return jax.tree.unflatten(structure, [tensors[name] for name in wanted])


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _template(run: Run) -> Any:
    """Shapes and types of the run's state, without computing it."""
    encoder = run.own_encoder()
    masks = encoder.first_mask, encoder.first_loud
    return jax.eval_shape(partial(start, run.program()), run.params, jax.random.key(run.seed), *masks)
