"""How several runs are best trained on the cores of a CPU: together in one program, or each in its own.

Run with ``python benchmarks/cpu_arrangements.py``. Four runs train for some steps in each arrangement; the engine takes
the last one. "all cores" lets XLA spread the products of one program over them. A process for each run would do the
same as a thread for each, with more memory: a compiled program does not hold Python's lock.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax

from incrt.cli.bench import study_run
from incrt.sac.group import train_stacks
from incrt.sac.population import usable_cores
from incrt.sac.progress import first_progress
from incrt.sac.stack import Stack

RUNS, STEPS, WINDOW = 4, 100, 20


def compiled(count: int, *, all_cores: bool) -> Callable[[Stack], Any]:
    """Training of a stack of so many runs."""
    options = {"xla_cpu_multi_thread_eigen": all_cores}
    train = jax.jit(train_stacks, static_argnums=(0, 1, 2), compiler_options=options)
    return lambda stack: train((stack.program,), (count,), STEPS, (stack.params,), (stack.states,))


def mapped(*, all_cores: bool) -> Callable[[Stack], Any]:
    """The same for runs that follow each other inside one program."""

    @partial(jax.jit, compiler_options={"xla_cpu_multi_thread_eigen": all_cores}, static_argnums=0)
    def train(program: Any, params: Any, states: Any) -> Any:
        def one(run: tuple[Any, Any]) -> Any:
            alone = jax.tree.map(lambda leaf: leaf[None], run)
            return train_stacks((program,), (1,), STEPS, (alone[0],), (alone[1],))

        return jax.lax.map(one, (params, states))

    return lambda stack: train(stack.program, stack.params, stack.states)


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

    def one_after_another(train: Callable[[Stack], Any]) -> Any:
        return [jax.block_until_ready(train(stack)) for stack in each]

    def a_thread_each(train: Callable[[Stack], Any]) -> Any:
        with ThreadPoolExecutor(usable_cores()) as pool:
            return list(pool.map(lambda stack: jax.block_until_ready(train(stack)), each))

    print(f"{RUNS} runs, W = {WINDOW}, {usable_cores()} cores: ms a step of one run")
    for all_cores in (True, False):
        cores = "all cores" if all_cores else "one core "
        batch, single, sequence = (
            compiled(RUNS, all_cores=all_cores),
            compiled(1, all_cores=all_cores),
            mapped(all_cores=all_cores),
        )
        for name, work in (
            ("vmap", partial(batch, together)),
            ("lax.map", partial(sequence, together)),
            ("one after another", partial(one_after_another, single)),
            ("a thread each", partial(a_thread_each, single)),
        ):
            print(f"{cores}  {name:18s} {milliseconds(work):6.2f}", flush=True)


if __name__ == "__main__":
    main()
