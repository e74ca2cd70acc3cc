"""Parts that a user brings: by name, by reference, as objects, and those that are none."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from incrt.config import FRICTIONS, ROBOTS, TRAJECTORIES, TRIGGERS, TaskConfig
from incrt.config.registry import Registry, as_arrays, description, is_reference, load

SOURCE = """
from typing import NamedTuple

class Part(NamedTuple):
    size: float = 2.0

    def measure(self):
        return self.size

def make():
    return Part(3.0)

def wants_more(size):
    return Part(size)

ready = Part(4.0)
nothing = 5
broken = property

def fails():
    raise RuntimeError("out of order")
"""


class Part(NamedTuple):
    """What the registry of these tests holds."""

    size: Array | float = 1.0

    def measure(self) -> Array | float:
        return self.size


@pytest.fixture
def registry() -> Registry[Callable[..., Any]]:
    found: Registry[Callable[..., Any]] = Registry(("measure",))
    found.register("small")(lambda: Part(1.0))
    found.register("large")(lambda: Part(9.0))
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(SOURCE)
    return path


def test_parts_are_found_by_their_names(registry: Registry[Callable[..., Any]]) -> None:
    assert list(registry) == ["small", "large"]
    assert "small" in registry
    assert "huge" not in registry
    assert registry["large"]().size == 9.0
    assert registry.rule("part", "small") == "small"


@pytest.mark.parametrize(("name", "size"), [("Part", 2.0), ("make", 3.0), ("ready", 4.0)])
def test_a_reference_to_a_file_is_a_class_a_function_or_an_object(
    registry: Registry[Callable[..., Any]], file: Path, name: str, size: float
) -> None:
    reference = f"{file}:{name}"
    assert registry.rule("part", reference) == reference
    assert registry.find("part", reference).measure() == size


def test_a_reference_to_a_module_is_imported(
    registry: Registry[Callable[..., Any]], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(file.parent)
    assert registry.find("part", "own:make").measure() == 3.0


def test_an_object_is_taken_as_it_is(registry: Registry[Callable[..., Any]]) -> None:
    part = Part(7.0)
    assert registry.rule("part", part) is part
    assert registry.find("part", part) is part


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Absent", "has no Absent"),
        ("nothing", "must be .*; int has no measure"),
        ("wants_more", "cannot be loaded .TypeError"),
        ("fails", "cannot be loaded .RuntimeError: out of order"),
    ],
)
def test_a_reference_that_gives_no_part_is_refused_in_one_sentence(
    registry: Registry[Callable[..., Any]], file: Path, name: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        registry.find("part", f"{file}:{name}")
    assert str(refusal.value).startswith(f"part '{file}:{name}'")
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_or_is_no_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    with pytest.raises(ValueError, match=r"robot '.*:Arm' cannot be loaded: there is no file .*wrong\.py, seen from /"):
        load("robot", f"{path}:Arm")
    path.write_text("def (")
    with pytest.raises(ValueError, match=r"robot '.*wrong\.py:Arm' cannot be loaded \(SyntaxError"):
        load("robot", f"{path}:Arm")


@pytest.mark.parametrize("value", ["huge", "own.py", "own.py:", ":Arm", "own.py:2", "", 3, None, object()])
def test_what_is_no_part_is_refused_with_what_is_accepted(registry: Registry[Callable[..., Any]], value: Any) -> None:
    with pytest.raises(ValueError, match=r"part must be one of small, large, a reference such as my_file\.py:NAME"):
        registry.rule("part", value)


def test_a_class_is_no_object_of_it(registry: Registry[Callable[..., Any]]) -> None:
    with pytest.raises(ValueError, match=r"; Part is a class, Part\(\) may do"):
        registry.rule("part", Part)


@pytest.mark.parametrize(
    ("text", "found"), [("a.py:B", True), ("a.b:C", True), ("/x/a.py:B", True), ("a.py", False), ("a:b c", False)]
)
def test_a_reference_is_a_home_and_a_name(text: str, found: bool) -> None:
    assert is_reference(text) == found


def test_numbers_become_arrays_of_one_precision_and_others_stay() -> None:
    class Mixed(NamedTuple):
        real: Any
        whole: Any
        flag: Any

    found = as_arrays("part", Mixed(np.float64(0.5), 3, flag=True), jnp.float32)
    assert [leaf.dtype for leaf in found] == [jnp.float32, jnp.int32, jnp.bool]
    for wrong in (object(), Mixed("text", 1, 1), "text", 3.0):
        with pytest.raises(ValueError, match=r"part must be a pytree of arrays, such as a NamedTuple; .* is none"):
            as_arrays("part", wrong, jnp.float32)


def test_a_description_tells_objects_apart_by_class_and_numbers() -> None:
    class Other(NamedTuple):
        size: Array | float = 1.0

    assert description("two_link") == "two_link"
    assert description(None) is None
    one = description(Part(jnp.asarray(0.5)))
    assert one == description(Part(0.5)) != description(Part(0.25))
    assert description(Other(0.5)) != one
    assert one["class"].endswith("Part")


def test_configurations_with_equal_objects_are_equal() -> None:
    class Rigid(NamedTuple):
        inertia: Array

        def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
            return self.inertia, jnp.zeros_like(dq)

    first, second = (TaskConfig(robot=Rigid(jnp.array([1.0, 2.0]))) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != TaskConfig(robot=Rigid(jnp.array([1.0, 3.0])))
    assert first.to_json()["robot"]["class"].endswith("Rigid")


def test_the_names_of_the_library_are_known_in_a_fresh_process() -> None:
    """Whatever is imported first: a configuration is checked before any arm is made."""
    program = "import incrt.config as c; print(*c.ROBOTS, *c.FRICTIONS, *c.TRAJECTORIES, *c.TRIGGERS)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*ROBOTS, *FRICTIONS, *TRAJECTORIES, *TRIGGERS]
    assert {"two_link", "stribeck", "paper"} <= set(done.stdout.split())
