"""How runs are best laid onto the cores of a CPU: together in one program or each in its own, on one core or on all.

Run with ``python benchmarks/cpu_arrangements.py [--window W]``: four runs, and a lone one, in each arrangement, with
all eight heads active. Of several runs the engine trains "a thread each"; of the two ways for a lone one
``incrt train`` takes the faster, as it finds it on the machine (``engine/placement.py``). The best of some repeats
counts.
"""

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

import jax

from incrt import EncoderConfig, Run, SacConfig, make_task, preset
from incrt.engine.batch import Stack
from incrt.engine.device_loop import COMPILER_OPTIONS, train_stacks
from incrt.engine.placement import usable_cores
from incrt.engine.progress import first_progress

RUNS, STEPS, REPEATS = 4, 200, 3


def make_stack(seeds: range, window: int) -> Stack:
    """Runs with all heads from the start."""
    environment, params = make_task(preset(task={"window": window}).task)
    encoder, sac = EncoderConfig(encoder="static"), SacConfig(steps=STEPS)
    runs = [Run(seed, environment, params, window, encoder, sac=sac) for seed in seeds]
    return Stack(range(len(runs)), [first_progress(run) for run in runs], None)


def train(stack: Stack) -> Any:
    """All steps of a stack, in one program, the states left as they are."""
    layouts = (stack.layout("cpu"),)
    return _TRAIN((stack.program,), (stack.count,), layouts, STEPS, (stack.params,), (stack.states,))


_TRAIN = jax.jit(train_stacks, static_argnums=(0, 1, 2, 3), compiler_options=COMPILER_OPTIONS["cpu"])


@partial(jax.jit, static_argnums=0, compiler_options=COMPILER_OPTIONS["cpu"])
def mapped(stack: Stack, params: Any, states: Any) -> Any:
    """The same for runs that follow each other inside one program."""

    def one(run: tuple[Any, Any]) -> Any:
        alone = jax.tree.map(lambda leaf: leaf[None], run)
        return train_stacks((stack.program,), (1,), (stack.layout("cpu"),), STEPS, (alone[0],), (alone[1],))

    return jax.lax.map(one, (params, states))


def train_in_a_process(window: int, core: int, runs: int, barrier: Barrier, seconds: Any) -> None:
    """So many runs one after another on one core, while the other processes do the same."""
    os.sched_setaffinity(0, {core})
    stack = make_stack(range(1), window)
    jax.block_until_ready(train(stack))
    for _ in range(REPEATS):
        barrier.wait()
        begin = time.perf_counter()
        for _ in range(runs):
            jax.block_until_ready(train(stack))
        seconds.put(time.perf_counter() - begin)


def milliseconds_in_processes(window: int, runs: int, cores: int) -> float:
    """A step of one run, with so many processes, each on a core of its own."""
    spawn = multiprocessing.get_context("spawn")
    runs_each = max(runs // cores, 1)
    barrier, seconds = spawn.Barrier(cores), spawn.Queue()
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    processes = [
        spawn.Process(target=train_in_a_process, args=(window, core, runs_each, barrier, seconds)) for core in chosen
    ]
    for process in processes:
        process.start()
    taken = [seconds.get() for _ in range(REPEATS * cores)]
    for process in processes:
        process.join()
    slowest = min(max(taken[i : i + cores]) for i in range(0, len(taken), cores))
    return float(1e3 * slowest / (runs_each * cores * STEPS))


def milliseconds(work: Callable[[], Any], runs: int) -> float:
    """A step of one run; the first call compiles."""
    jax.block_until_ready(work())
    taken = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        jax.block_until_ready(work())
        taken.append(time.perf_counter() - begin)
    return 1e3 * min(taken) / (runs * STEPS)


def main() -> None:
    """Print one line an arrangement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--window", type=int, default=20)
    window = parser.parse_args().window
    cores = usable_cores()
    together = make_stack(range(RUNS), window)
    each = [make_stack(range(seed, seed + 1), window) for seed in range(RUNS)]

    def one_after_another() -> Any:
        return [jax.block_until_ready(train(stack)) for stack in each]

    def a_thread_each() -> Any:
        with ThreadPoolExecutor(cores) as pool:
            return list(pool.map(lambda stack: jax.block_until_ready(train(stack)), each))

    def say(name: str, found: float) -> None:
        print(f"{name:44s} {found:6.2f}", flush=True)

    print(f"W = {window}, {cores} cores: ms a step of one run")
    say(f"{RUNS} runs, vmap", milliseconds(lambda: train(together), RUNS))
    say(f"{RUNS} runs, lax.map", milliseconds(lambda: mapped(together, together.params, together.states), RUNS))
    say(f"{RUNS} runs, one after another", milliseconds(one_after_another, RUNS))
    say(f"{RUNS} runs, a thread each", milliseconds(a_thread_each, RUNS))
    say(f"{RUNS} runs, a process on each core", milliseconds_in_processes(window, RUNS, cores))
    say("a lone run, all cores", milliseconds(lambda: train(each[0]), 1))
    # In a process of its own: JAX starts as many threads as there are cores for it then.
    say("a lone run, one core", milliseconds_in_processes(window, 1, 1))


if __name__ == "__main__":
    main()
