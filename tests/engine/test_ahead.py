"""Programs that are compiled beside the training."""

import threading
import time
from collections.abc import Generator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compilations import compilations
from small_runs import HEADS, small_run

from incrt.engine import Checkpoint, Population, ahead, device_loop
from incrt.engine.ahead import Ahead, wait_for_all
from incrt.engine.compilation import compilations as waits
from incrt.engine.compilation import covered
from incrt.engine.population import find_device
from incrt.engine.progress import Report
from incrt.heads.triggers import Decision, Signals


class Grows:
    """Grows a head at every check, so that a further layout is needed soon."""

    def decide(self, signals: Signals, state: None) -> tuple[Decision, None]:
        return Decision("noop" if all(signals.mask) else "grow", "always"), state


def test_a_call_finds_the_program_that_was_compiled_ahead() -> None:
    program = jax.jit(lambda power, x: x**power, static_argnums=0)
    x, known = jnp.arange(5.0), Ahead()
    with compilations() as found:
        known.ask("cubes", program, 3, x)
        known.ask("cubes", program, 3, x)
        wait_for_all()
        known.take("cubes")
        cubes = program(3, x)
    assert [beside for _, beside in found] == [True]
    np.testing.assert_array_equal(cubes, np.arange(5.0) ** 3)


def test_a_call_does_not_wait_for_what_has_not_begun() -> None:
    going_on = threading.Event()
    holding = ahead._COMPILER.submit(going_on.wait, 60)  # noqa: SLF001
    try:
        program, known = jax.jit(lambda x: x + 1), Ahead()
        known.ask("next", program, jnp.zeros(3))
        known.take("next")
        with compilations() as found:
            program(jnp.zeros(3))
        assert [beside for _, beside in found] == [False]
        known.take("never asked for")
    finally:
        going_on.set()
    assert holding.result()


def test_what_cannot_be_compiled_is_told_by_the_call() -> None:
    def wrong(x: jax.Array) -> jax.Array:
        raise ValueError(f"not {x.shape}")

    program, known = jax.jit(wrong), Ahead()
    known.ask("wrong", program, jnp.zeros(2))
    wait_for_all()
    known.take("wrong")
    with pytest.raises(ValueError, match=r"not \(2,\)"):
        program(jnp.zeros(2))


def grown(worth_it: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Checkpoint, list[tuple[str, bool]]]:
    """A run to its end, and what was compiled for it."""
    jax.clear_caches()
    monkeypatch.setattr(device_loop, "_WORTH_IT", worth_it)
    population = Population([small_run(5, heads=HEADS.replace(trigger=Grows()))], "cpu", cores=cores)
    with compilations() as found:
        (saved,) = [saved for news in population.train() for _, saved in news.saved][-1:]
    return saved, [(name, beside) for name, beside in found if "train_stacks" in name or "_act" in name]


def test_a_run_is_the_same_to_the_bit_whoever_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    (beside, ahead_of_time), (inside, at_the_event), (_, on_one_core) = (
        grown(steps, cores, monkeypatch) for steps, cores in ((0, 2), (10**6, 2), (0, 1))
    )
    assert beside.progress.heads == inside.progress.heads == 3
    assert {name for name, _ in ahead_of_time} == {name for name, _ in at_the_event}
    assert any(is_beside for _, is_beside in ahead_of_time)
    assert not any(is_beside for _, is_beside in [*at_the_event, *on_one_core])
    assert len(ahead_of_time) == len(at_the_event)  # nothing is compiled twice
    for one, other in zip(jax.tree.leaves(beside.state), jax.tree.leaves(inside.state), strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_asked_for_after_all_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    population, is_closed = Population([small_run(5), small_run(6)], "cpu", cores=2), threading.Event()

    def advance(group: device_loop.Group) -> list[Report]:
        """The first group is done at once, the other is still being trained when nobody wants more news."""
        if group is population.groups[1]:
            is_closed.wait(60)
        said.append("asked")
        return []

    monkeypatch.setattr(device_loop.Group, "advance", advance)
    monkeypatch.setattr(device_loop.Group, "drop_ahead", lambda _: said.append("dropped"))
    news = population.train()
    next(news)
    assert isinstance(news, Generator)
    threading.Timer(0.3, is_closed.set).start()
    news.close()
    assert said == ["asked", "asked", "dropped", "dropped"]


def test_waiting_for_a_program_counts_as_compiling() -> None:
    def slow(x: jax.Array) -> jax.Array:
        time.sleep(0.2)
        return 2 * x

    program, known, before = jax.jit(slow), Ahead(), len(waits())
    known.ask("slow", program, jnp.zeros(3))
    time.sleep(0.05)  # it has begun
    known.take("slow")
    assert covered(waits()[before:]) > 0.1


def test_the_device_is_that_of_who_asks() -> None:
    with jax.default_device(find_device("cpu")):
        program, known = jax.jit(lambda x: 2 * x), Ahead()
        known.ask("twice", program, jnp.ones(4))
        wait_for_all()
        known.take("twice")
        with compilations() as found:
            np.testing.assert_array_equal(program(jnp.ones(4)), 2 * np.ones(4))
    assert found == []
