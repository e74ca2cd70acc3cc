"""Programs compiled beside the training, so that they are there when they are needed.

A run with growing heads needs a further program at its first event, and one each time its heads no longer fit into the
layout that it trains in. Compiling one takes as long as some thousand steps, and JAX waits for it. Here it is done in a
thread as soon as training has begun. What is computed does not depend on it: the programs are the same ones.
"""

import time
from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import jax

from incrt.engine.compilation import BESIDE, compilations

_COMPILER = ThreadPoolExecutor(1, BESIDE)
"""One for all: compiling takes every core that it can get. JAX knows a program that was compiled for another run."""


class Ahead:
    """What was asked for on behalf of some runs, by a name for each program."""

    def __init__(self) -> None:
        self._asked: dict[Hashable, Future[None]] = {}

    def ask(self, name: Hashable, program: Any, *arguments: Any) -> None:
        """Compile a program of ``jax.jit`` for arguments like these; those that are not arrays are static."""
        if name not in self._asked:
            device = getattr(jax.config, "jax_default_device", None)  # what jax.default_device sets, for this thread
            self._asked[name] = _COMPILER.submit(_compile, device, program, jax.tree.map(_described, arguments))

    def take(self, name: Hashable) -> None:
        """Before the program is called: wait if it is being compiled; if that has not begun, the call itself does it.

        Where compiling has failed the call fails too, and says why.
        """
        asked = self._asked.get(name)
        if asked is not None and not asked.cancel():
            begin = time.monotonic()
            wait([asked])
            compilations().append((begin, time.monotonic()))

    def drop(self) -> None:
        """Nothing that has not begun is needed any more."""
        for asked in self._asked.values():
            asked.cancel()


def wait_for_all() -> None:
    """Until all that anybody has asked for is compiled, so that a clock may stand still without a gain."""
    _COMPILER.submit(lambda: None).result()


def _compile(device: Any, program: Any, arguments: Any) -> None:
    with jax.default_device(device):
        program.lower(*arguments).compile()


def _described(leaf: Any) -> Any:
    """Shape and type of an array, which may be gone by then: the program that trains takes its memory over."""
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if isinstance(leaf, jax.Array) else leaf
