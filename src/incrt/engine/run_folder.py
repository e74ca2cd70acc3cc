"""The folder of a run: what other programs read of it, and what it goes on from.

``config.json`` says what was run, ``events.jsonl`` holds one line a check, ``metrics.jsonl`` one line a stretch,
``policy.safetensors`` the policy once training is over and ``conclusion.json`` what it came to, ``checkpoint/`` what it
takes to go on.
"""

import contextlib
import json
import math
import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np

from incrt.config.earlier import refuse_earlier
from incrt.engine import checkpoint, policy
from incrt.engine.batch import look_alone
from incrt.engine.progress import Checkpoint, Report, Run
from incrt.heads.guarantees import conclude
from incrt.storage.atomic import ASIDE
from incrt.storage.json import checksum, finite, json_line, write_json
from incrt.storage.lock import HeldError, lock
from incrt.storage.lock import is_held as is_lock_held

_LOGS = ("events.jsonl", "metrics.jsonl")
TENSORBOARD = "tensorboard"
"""Name of the folder for TensorBoard, where its figures are asked for."""
LOCK = ".lock"
"""Name of the file that who trains in a folder holds locked."""
_RESULTS = ("policy.safetensors", "conclusion.json")
_EVALUATIONS = ("eval*.json", "episodes.safetensors")
"""Written later, by who evaluates the run."""
_LENGTH = "sac.steps"
"""A run that is over can be made longer."""
_FILES = "files."
"""Before the names of files that parts are made of. One that has changed since may still make the same part."""


class RunFolder:
    """One run's folder. ``about`` is what config.json is to say of the environment: enough to make it again."""

    def __init__(self, path: Path, run: Run, about: Mapping[str, Any], warn: Callable[[str], None]) -> None:
        self.path, self.run, self._warn = path, run, warn
        self._made: list[Path] = []
        """The folders that were not there before it was taken, from the inside out."""
        self._held: IO[str] | None = None
        self._before: dict[str, Any] = {}
        """What config.json said when the folder was taken."""
        self._found: tuple[Checkpoint, Mapping[str, int]] | None = None
        """The run as it stood then, and the lengths of its logs."""
        settings = {name: getattr(run, name).to_json() for name in ("encoder", "heads", "sac")}
        environment = {"environment": {"kind": type(run.environment).__name__, "params": _digest(run.params)}}
        try:
            self._about = json.loads(
                json.dumps(finite({"seed": run.seed, "window": run.window, **settings, **environment, **about}))
            )
        except TypeError as error:
            raise ValueError(f"about cannot be written as JSON: {error}") from None
        self._identity = checksum({name: value for name, value in _flat(self._about).items() if _identifies(name)})

    def take(self) -> Checkpoint | None:
        """Keep others out, and find where the run stands; a folder of another run is refused.

        Nothing of a run is changed, but that checkpoints that are damaged are put aside.
        """
        with self._writable():
            self._made = [each for each in (self.path, *self.path.parents) if not each.exists()]
            self.path.mkdir(parents=True, exist_ok=True)
            self._written()  # a folder of something else is left as it is
            self._lock()
            self._before, checkpoints = self._written(), self.path / "checkpoint"
            files = self._about.get("files", {})
            for name in (each for each, was in self._before.get("files", {}).items() if files.get(each) != was):
                self._warn(f"{name} has changed since the run in {self.path} was begun")
            self._found = checkpoint.latest(checkpoints, self._identity, self.run, self.log_lengths(), self._warn)
            if self._found is None and any((self.path / name).exists() for name in _RESULTS):
                raise ValueError(f"{self.path} has results but no checkpoint; remove the folder to train the run anew")
        return None if self._found is None else self._found[0]

    def begin(self, maker: Mapping[str, Any]) -> None:
        """Bring the folder that was taken to where the run goes on from.

        ``maker`` is who goes on with the run, as config.json is to name it.
        """
        saved, lengths = (None, {}) if self._found is None else self._found
        step, is_over = (0, False) if saved is None else (saved.progress.step, saved.progress.finished)
        with self._writable():
            asides = [f"{name}.*{ASIDE}" for name in ("config.json", *_RESULTS, "checkpoint/*")]
            self._remove(*asides)  # what a kill left; those of evaluations may be what another process writes now
            if saved is None or not is_over:
                # Of a run that was shorter. Its policy stays until that of the longer one takes its place.
                self._remove("conclusion.json*", *(f"{name}*" for name in _EVALUATIONS))
            elif not all((self.path / name).exists() for name in _RESULTS):  # killed after the last checkpoint
                self._conclude(saved)
            self._describe(self._before, step, None if is_over else maker)
            for name in _LOGS:
                (self.path / name).touch()
                os.truncate(self.path / name, lengths.get(name, 0))
        self._found = None  # it may be large

    @property
    def is_new(self) -> bool:
        """Whether there was no such folder before it was taken."""
        return bool(self._made)

    @contextlib.contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ValueError(f"{self.path} cannot be written: {error}") from error

    def _remove(self, *patterns: str) -> None:
        for pattern in patterns:
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)

    def _lock(self) -> None:
        """Keep other processes out until this one ends, however it ends."""
        try:
            self._held = lock(self.path / LOCK, wait=False)
        except HeldError:
            raise HeldError(f"{self.path} is being trained by another process") from None

    def close(self) -> None:
        """Let other processes in."""
        if self._held is not None:
            self._held.close()

    def _written(self) -> dict[str, Any]:
        """The folder's config.json, empty if there is none yet; that of another run is refused."""
        path = self.path / "config.json"
        if not path.exists():
            if any(each.name != LOCK and not each.match(f"config.json.*{ASIDE}") for each in self.path.iterdir()):
                raise ValueError(f"{self.path} is not empty and has no config.json: it is not the folder of a run")
            return {}
        try:
            written = dict(json.loads(path.read_text()))
            refuse_earlier(written, "runs are evaluated and reported here, but not trained on")
            before, now = _flat(written), _flat(self._about)
            length = int(before[_LENGTH])
            written["made_by"] = [{**each, "from_step": int(each["from_step"])} for each in written["made_by"]]
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} does not describe a run ({type(error).__name__}: {error})") from None
        others = [name for name in now if before.get(name) != now[name] and _identifies(name)]
        if (others or length > now[_LENGTH]) and self.is_bare:
            return {}  # nothing is lost with a run that ended before its first checkpoint
        if others:
            raise ValueError(f"{self.path} holds another run, with another {', '.join(others)}; choose another folder")
        if length > now[_LENGTH]:
            raise ValueError(f"{self.path} holds a run of {length} steps; it can be made longer, not shorter")
        return written

    def discard(self) -> None:
        """Leave nothing half-built of a run that cannot go on, unless it has a checkpoint or other files lie there."""
        own = {"config.json", *_LOGS, LOCK, TENSORBOARD, "checkpoint"}
        if not self.is_bare or any(each.name not in own for each in self.path.iterdir()):
            return
        self._remove("config.json", *_LOGS, LOCK, f"{TENSORBOARD}/events.out.tfevents.*")
        for folder in (self.path / TENSORBOARD, self.path / "checkpoint", *self._made):
            with contextlib.suppress(OSError):  # it is not there, or another run is in it
                folder.rmdir()

    @property
    def is_bare(self) -> bool:
        """Whether the folder has neither checkpoints nor results."""
        kept = ("checkpoint/*", *_RESULTS, *_EVALUATIONS)
        return not any(any(self.path.glob(pattern)) for pattern in kept)

    def _describe(self, written: Mapping[str, Any], step: int, maker: Mapping[str, Any] | None) -> None:
        """Bring config.json up to date: what is run, and who trained it from which step on."""
        makers = list(written.get("made_by", []))
        if maker is not None:
            makers = [each for each in makers if each["from_step"] < step]  # later steps are trained again
            if not makers or {**makers[-1], "from_step": step} != {**maker, "from_step": step}:
                makers.append({"from_step": step, **maker})
        # A run that is over was trained with the files of then, whatever they say now.
        files = {"files": written.get("files", {})} if maker is None else {}
        wanted = {**self._about, **files, "made_by": makers}
        if wanted != written:
            write_json(self.path / "config.json", wanted)

    def add(self, report: Report) -> None:
        """Append what a stretch brought."""
        figures = report.metrics._asdict()
        if figures["evaluation"] is None:
            del figures["evaluation"]
        self._append("metrics.jsonl", {"step": figures.pop("step"), "return": figures.pop("episode_return"), **figures})
        if report.check is not None:
            self._append("events.jsonl", report.check.to_json())

    def save(self, saved: Checkpoint, log_lengths: Mapping[str, int]) -> None:
        """Add a checkpoint, made when the logs were so long; at the end of the run also its results."""
        for name in log_lengths:  # a checkpoint must not be there before the logs that it goes on from
            with (self.path / name).open("rb+") as file:
                os.fsync(file.fileno())
        checkpoint.save(self.path / "checkpoint", self._identity, saved, log_lengths)
        if saved.progress.finished:
            self._conclude(saved)

    def _conclude(self, saved: Checkpoint) -> None:
        policy.save(self.path / "policy.safetensors", policy.policy_of(self.run, saved.state))
        write_json(self.path / "conclusion.json", conclusion(saved))

    def _append(self, name: str, entry: Mapping[str, Any]) -> None:
        with (self.path / name).open("a") as file:
            file.write(json_line(entry))

    def log_lengths(self) -> dict[str, int]:
        """How long each log is."""
        return {name: (self.path / name).stat().st_size for name in _LOGS if (self.path / name).exists()}


def is_held(path: Path) -> bool:
    """Whether a process trains in this folder now."""
    return is_lock_held(path / LOCK)


def conclusion(saved: Checkpoint) -> dict[str, Any]:
    """What a run that is over came to; ``guarantees`` are those of the paper on a whole run, where it had checks."""
    progress, run = saved.progress, saved.progress.run
    guarantees = None
    heads_state = progress.heads_state
    if heads_state is not None and heads_state.last_check > 0 and progress.failure is None:
        # The heads may have changed at the last check, so their shares are measured anew.
        shares = look_alone(run, saved.state).shares.tolist()
        if all(map(math.isfinite, shares)):
            ranks, events = progress.ranks, progress.certificates
            guarantees = conclude(run.trigger, heads_state.mask, ranks, shares, events).to_json()
    return {
        "steps": progress.step,
        "heads": progress.heads,
        "failure": None if progress.failure is None else progress.failure._asdict(),
        "guarantees": guarantees,
    }


def _digest(params: Any) -> str:
    """Stands for an environment's numbers; to seven digits, since machines differ in the last."""
    return checksum([[f"{x:.7g}" for x in np.ravel(leaf).tolist()] for leaf in jax.tree.leaves(params)])


def _identifies(name: str) -> bool:
    """Whether this is what tells a run from others."""
    return name != _LENGTH and not name.startswith(_FILES)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """What a description of a run says, by dotted names."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def made_by(device: str, packages: Sequence[str] = ("jax", "jaxlib", "numpy", "optax")) -> dict[str, Any]:
    """Versions, source and machine."""
    return {
        "incrt": metadata.version("incrt") if _is_installed("incrt") else "from a checkout",
        "commit": _commit(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in packages if _is_installed(name)},
        "device": device,
    }


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _commit() -> str | None:
    """The commit of the source, with a mark if files have changed since; None if this is not its own checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
