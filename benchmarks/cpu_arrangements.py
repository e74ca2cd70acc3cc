"""How runs are best laid onto the cores of a CPU: together in one program or each in its own, with one thread or all.

Run with ``python benchmarks/cpu_arrangements.py [--window W]``: four runs, and a lone one, in each arrangement, with
all eight heads active. Of several runs the engine trains "a thread each"; of the two ways for a lone one
``incrt train`` takes the faster, as it finds it on the machine (``engine/threads.py``). The best of some repeats
counts.
"""

import argparse
import multiprocessing
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
from incrt.engine.progress import first_progress
from incrt.engine.threads import limit_threads, usable_cores

RUNS, STEPS, REPEATS = 4, 200, 3


def make_stack(seeds: range, window: int) -> Stack:
    """Runs with all heads from the start."""
    environment, params = make_task(preset(task={"window": window}).task)
    encoder, sac = EncoderConfig(encoder="static"), SacConfig(steps=STEPS, learning_starts=1)
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


def train_in_a_process(window: int, runs: int, barrier: Barrier, seconds: Any) -> None:
    """So many runs one after another with one thread, while the other processes do the same."""
    limit_threads(1)
    stack = make_stack(range(1), window)
    jax.block_until_ready(train(stack))
    for _ in range(REPEATS):
        barrier.wait()
        begin = time.perf_counter()
        for _ in range(runs):
            jax.block_until_ready(train(stack))
        seconds.put(time.perf_counter() - begin)


def milliseconds_in_processes(window: int, runs: int, count: int) -> float:
    """The same in so many processes of one thread each."""
    spawn = multiprocessing.get_context("spawn")
    runs_each = max(runs // count, 1)
    barrier, seconds = spawn.Barrier(count), spawn.Queue()
    arguments = (window, runs_each, barrier, seconds)
    processes = [spawn.Process(target=train_in_a_process, args=arguments) for _ in range(count)]
    for process in processes:
        process.start()
    taken = [seconds.get() for _ in range(REPEATS * count)]
    for process in processes:
        process.join()
    slowest = min(max(taken[i : i + count]) for i in range(0, len(taken), count))
    return float(1e3 * slowest / (runs_each * count * STEPS))


def milliseconds(work: Callable[[], Any], runs: int) -> float:
    """The time that the work takes, divided by all steps of all its runs; the first call compiles."""
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

    print(f"W = {window}, {cores} cores: time divided by all steps of all runs, in ms")
    say(f"{RUNS} runs, vmap", milliseconds(lambda: train(together), RUNS))
    say(f"{RUNS} runs, lax.map", milliseconds(lambda: mapped(together, together.params, together.states), RUNS))
    say(f"{RUNS} runs, one after another", milliseconds(one_after_another, RUNS))
    say(f"{RUNS} runs, a thread each", milliseconds(a_thread_each, RUNS))
    say(f"{RUNS} runs, a process for each core", milliseconds_in_processes(window, RUNS, cores))
    say("a lone run, all threads", milliseconds(lambda: train(each[0]), 1))
    # In a process of its own: JAX starts as many threads as there are cores for it then.
    say("a lone run, one thread", milliseconds_in_processes(window, 1, 1))


if __name__ == "__main__":
    main()
