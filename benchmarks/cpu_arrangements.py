"""How several runs are best trained on the cores of a CPU: together in one program, or each in its own.

Run with ``python benchmarks/cpu_arrangements.py``. Four runs train for some steps in each arrangement; the engine takes
"a thread each".
"""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

import jax

from incrt.engine.batch import Stack
from incrt.engine.device_loop import train_stacks
from incrt.engine.population import usable_cores
from incrt.engine.progress import first_progress
from incrt.peers.engine import study_run

RUNS, STEPS, WINDOW = 4, 100, 20


def compiled(count: int) -> Callable[[Stack], Any]:
    """Training of a stack of so many runs."""
    train = jax.jit(train_stacks, static_argnums=(0, 1, 2))
    return lambda stack: train((stack.program,), (count,), STEPS, (stack.params,), (stack.states,))


def mapped(stack: Stack) -> Any:
    """The same for runs that follow each other inside one program."""

    def one(run: tuple[Any, Any]) -> Any:
        alone = jax.tree.map(lambda leaf: leaf[None], run)
        return train_stacks((stack.program,), (1,), STEPS, (alone[0],), (alone[1],))

    return jax.lax.map(one, (stack.params, stack.states))


def train_in_a_process(runs: int, barrier: Barrier, seconds: Any) -> None:
    """So many runs one after another, while the other processes do the same."""
    train = compiled(1)
    stack = Stack([0], [first_progress(study_run(0, WINDOW, 5.0, STEPS))], None)
    jax.block_until_ready(train(stack))
    barrier.wait()
    begin = time.perf_counter()
    for _ in range(runs):
        jax.block_until_ready(train(stack))
    seconds.put(time.perf_counter() - begin)


def milliseconds_in_processes() -> float:
    """A step of one run, with as many processes as there are cores."""
    cores, spawn = usable_cores(), multiprocessing.get_context("spawn")
    runs_each = max(RUNS // cores, 1)
    barrier, seconds = spawn.Barrier(cores), spawn.Queue()
    processes = [spawn.Process(target=train_in_a_process, args=(runs_each, barrier, seconds)) for _ in range(cores)]
    for process in processes:
        process.start()
    slowest: float = max(seconds.get() for _ in processes)
    for process in processes:
        process.join()
    return 1e3 * slowest / (runs_each * cores * STEPS)


def milliseconds(work: Callable[[], Any]) -> float:
    """A step of one run; the first call compiles."""
    jax.block_until_ready(work())
    begin = time.perf_counter()
    jax.block_until_ready(work())
    return 1e3 * (time.perf_counter() - begin) / (RUNS * STEPS)


def main() -> None:
    """Print one line an arrangement."""
    members = [first_progress(study_run(seed, WINDOW, 5.0, STEPS)) for seed in range(RUNS)]
    together = Stack(range(RUNS), members, None)
    each = [Stack([i], [member], None) for i, member in enumerate(members)]

    batch, single, sequence = compiled(RUNS), compiled(1), jax.jit(lambda: mapped(together))

    def one_after_another() -> Any:
        return [jax.block_until_ready(single(stack)) for stack in each]

    def a_thread_each() -> Any:
        with ThreadPoolExecutor(usable_cores()) as pool:
            return list(pool.map(lambda stack: jax.block_until_ready(single(stack)), each))

    print(f"{RUNS} runs, W = {WINDOW}, {usable_cores()} cores: ms a step of one run")
    for name, work in (
        ("vmap", partial(batch, together)),
        ("lax.map", sequence),
        ("one after another", one_after_another),
        ("a thread each", a_thread_each),
    ):
        print(f"{name:18s} {milliseconds(work):6.2f}", flush=True)
    print(f"{'a process each':18s} {milliseconds_in_processes():6.2f}", flush=True)


if __name__ == "__main__":
    main()
