"""Parts that a user may bring: robots, frictions, trajectories and triggers, each by its name.

A name is written once, where the part is: ``@ROBOTS.register("two_link")`` above what makes it. A configuration names
a part, refers to one of the user's own as ``my_arm.py:Arm`` or ``package.module:Arm``, or holds it as an object.
"""

import hashlib
import importlib
import inspect
import json
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from incrt.config.rules import Rule

Maker = TypeVar("Maker", bound=Callable[..., Any])


class Registry(Generic[Maker]):
    """Makers of one kind of part by name.

    ``functions`` are what an object must have to be such a part, and ``files`` make parts of files, by how these end.
    """

    def __init__(self, functions: Sequence[str]) -> None:
        self.functions = tuple(functions)
        self.files: dict[str, Callable[[str], Any]] = {}
        self._makers: dict[str, Maker] = {}

    def register(self, name: str) -> Callable[[Maker], Maker]:
        """Give what makes a part its name."""

        def add(maker: Maker) -> Maker:
            self._makers[name] = maker
            return maker

        return add

    def __getitem__(self, name: str) -> Maker:
        return self._makers[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    @property
    def rule(self) -> Rule[Any]:
        """For a field that holds a part: its name, a reference to one, or the part itself."""
        functions = " and ".join(self.functions)
        return Rule(f"a name, a reference such as my_file.py:NAME, or an object that has {functions}", self._settle)

    def _settle(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            if value not in self._makers and not is_reference(value) and Path(value).suffix not in self.files:
                raise ValueError(f"{name} must be {self._accepted()}; got {value!r}")
        elif isinstance(value, type):
            raise ValueError(
                f"{name} must be {self._accepted()}; {value.__name__} is a class, {value.__name__}() may do"
            )
        elif missing := [each for each in self.functions if not callable(getattr(value, each, None))]:
            raise ValueError(f"{name} must be {self._accepted()}; {type(value).__name__} has no {missing[0]}")
        return value

    def _accepted(self) -> str:
        functions, files = " and ".join(self.functions), "".join(f", a file that ends in {end}" for end in self.files)
        return f"one of {', '.join(self)}{files}, a reference such as my_file.py:NAME, or an object with {functions}"

    def find(self, field: str, value: Any) -> Any:
        """The part that a field's reference, file or object stands for."""
        if not isinstance(value, str):
            return value
        if make := self.files.get(Path(value).suffix):
            return make(value)
        return self._settle(f"{field} {value!r}", load(field, value))


def as_array(values: Any, dtype: Any) -> jax.Array:
    """Numbers as an array, converted by NumPy: JAX would compile a small program for each shape, at every start."""
    return jnp.asarray(np.array(values, dtype), dtype)


def as_arrays(field: str, part: Any, dtype: Any) -> Any:
    """A part of the user's own with its numbers as arrays of one precision; what is no tree of arrays is refused."""
    leaves = jax.tree.leaves(part)
    if any(
        leaf is part or not isinstance(leaf, (bool, int, float, np.ndarray, np.generic, jax.Array)) for leaf in leaves
    ):
        raise ValueError(f"{field} must be a pytree of arrays, such as a NamedTuple; {type(part).__name__} is none")

    def cast(leaf: Any) -> jax.Array:
        return jnp.asarray(leaf, dtype if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else None)

    return jax.tree.map(cast, part)


class LostPart:
    """Stands for a part that was an object: a file holds its description alone, so it cannot be used again."""

    def __init__(self, described: Any) -> None:
        self.described = described

    def decide(self, *_: Any) -> Any:
        """A trigger is asked for nothing else; what was trained by it can still be evaluated."""
        kind = self.described.get("class")
        raise ValueError(f"it was an object of the user's own ({kind}), which no file holds; give it again")


_TRACED = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)
"""What JAX raises where Python wants to know a number that only the compiled program will know."""


@contextmanager
def refusing(field: str) -> Iterator[None]:
    """While a part of the user's own is tried: whatever it raises becomes a sentence that names the field."""
    try:
        yield
    except ValueError:
        raise
    except _TRACED as error:
        raise ValueError(
            f"the {field} cannot be compiled: it gives its arguments to NumPy, or decides on them by if, while or "
            "float(); accepted are functions of jax.numpy, such as jnp.where"
        ) from error
    except Exception as error:
        why = next(iter(str(error).splitlines()), "")
        raise ValueError(f"the {field} cannot be used ({type(error).__name__}: {why})") from error


def try_compiling(field: str, function: Callable[..., Any], *arguments: Any) -> None:
    """Refuse a function of a part that Python runs and that training could not compile."""
    with refusing(field):
        jax.eval_shape(lambda *given: (function(*given), 0.0)[1], *arguments)


def is_reference(value: str) -> bool:
    """Whether a text has the form FILE.py:NAME or MODULE:NAME."""
    home, _, name = value.rpartition(":")
    return bool(home) and name.isidentifier()


def load(kind: str, reference: str) -> Any:
    """What a reference stands for. A class or function is called without arguments, anything else is taken as it is."""
    home, _, name = reference.rpartition(":")
    file = Path(home).resolve() if home.endswith(".py") else None
    if file is not None and not file.is_file():
        raise ValueError(f"{kind} {reference!r} cannot be loaded: there is no file {home}, seen from {Path.cwd()}")
    try:
        with _importing_from(file.parent if file else Path.cwd(), keeps=file is None):
            names = _run(str(file), file.stat().st_mtime_ns) if file else vars(importlib.import_module(home))
            found = names.get(name)
            part = found() if inspect.isclass(found) or inspect.isfunction(found) else found
    except Exception as error:  # whatever the user's own code raises
        raise ValueError(f"{kind} {reference!r} cannot be loaded ({type(error).__name__}: {error})") from error
    if part is None:
        raise ValueError(f"{kind} {reference!r} cannot be loaded: {home} has no {name}")
    return part


@cache
def _run(path: str, changed: int) -> dict[str, Any]:
    """What a file defines; run once, as a class that is defined anew would need programs of its own."""
    del changed  # a file that was changed since is run again
    return runpy.run_path(path)


@contextmanager
def _importing_from(folder: Path, *, keeps: bool) -> Iterator[None]:
    """While a user's own code is loaded: it may import what lies beside it, as where Python itself runs it.

    Unless Python ``keeps`` these modules, the next file imports its own ones, whatever their names.
    """
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [] if keeps else set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == folder:
                del sys.modules[name]


def file_digests(parts: Iterable[Any]) -> dict[str, str]:
    """Of each file that one of these parts is made of, by its path as it was given: what tells its content from others.

    Only the text of the file itself is looked at, not what it imports.
    """
    texts = (part for part in parts if isinstance(part, str))
    paths = {text.rpartition(":")[0] if is_reference(text) else text for text in texts}
    return {
        path: hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] for path in sorted(paths) if Path(path).is_file()
    }


def description(part: Any) -> Any:
    """A part as JSON can hold it: its name, or what tells an object from others: its class and a digest of its numbers.

    To seven digits, since machines differ in the last.
    """
    if part is None or isinstance(part, str):
        return part
    if isinstance(part, LostPart):
        return part.described
    leaves = jax.tree.leaves(part)
    if len(leaves) == 1 and leaves[0] is part:  # no tree of arrays, as triggers are not
        numbers = json.dumps(_stable(getattr(part, "__dict__", {})), sort_keys=True)
    else:
        values = [[_digits(x) for x in np.ravel(leaf).tolist()] for leaf in leaves]
        numbers = json.dumps([values, str(jax.tree.structure(part))])  # what is static stands in the structure
    kind = f"{type(part).__module__}.{type(part).__qualname__}"
    return {"class": kind, "numbers": hashlib.sha256(numbers.encode()).hexdigest()[:16]}


def _digits(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, int | float) else repr(value)


def _stable(value: Any, depth: int = 8) -> Any:
    """What JSON can hold of a value and is the same in every process: not where an object lies in memory."""
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        value = np.asarray(value).tolist()
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if depth == 0 or isinstance(value, str | int | float | None):
        return value if depth else type(value).__qualname__
    if isinstance(value, dict):
        return {str(key): _stable(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_stable(each, depth - 1) for each in value]
    text = repr(value)
    if " at 0x" not in text:
        return text
    return {type(value).__qualname__: _stable(getattr(value, "__dict__", {}), depth - 1)}


ROBOTS: Registry[Callable[..., Any]] = Registry(("mass_and_bias",))
FRICTIONS: Registry[Callable[..., Any]] = Registry(("start", "terms"))
TRAJECTORIES: Registry[Callable[..., Any]] = Registry(("draw", "at"))
TRIGGERS: Registry[Callable[..., Any]] = Registry(("decide",))
