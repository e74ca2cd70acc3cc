"""How long it takes from ``incrt train`` to the first step, with an empty and with a full cache of compiled programs.

Run with ``python benchmarks/startup.py``; the figures are seconds, medians over the starts. Each start is a process of
its own, which runs the command as it is and is ended after its first stretch. It begins to step once the training
program is there and the runs are. Where JAX traces, lowers, compiles or loads a program in a thread beside other work,
the parts add up to more than the whole.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from statistics import median

import jax

from incrt.engine.threads import usable_cores

PARTS = {
    "imports": "Python, imports, options",
    "small": "small programs",
    "start": "program that makes the first state",
    "trace": "training program: traced",
    "lower": "training program: lowered",
    "compile": "training program: compiled, or loaded",
    "first_step": "FIRST STEP, from the start of the process",
    "first_stretch": "500 steps done",
    "programs": "programs made until then (number)",
}
_KINDS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_TRAINING, _START = "train_stacks", "_start"


def child(begun: float, command: list[str]) -> None:
    """Run a command of ``incrt`` until the first stretch is trained, and print when what was done."""
    spent: dict[str, float] = defaultdict(float)
    ready = [0.0]

    def note(event: str, duration_secs: float, **about: str | int) -> None:
        if (kind := _KINDS.get(event)) is None:
            return
        name = str(about.get("fun_name")).removeprefix("jit(").removesuffix(")")
        spent["programs"] += kind == "compile"
        spent[kind if name == _TRAINING else "start" if name == _START else "small"] += duration_secs
        if (name, kind) == (_TRAINING, "compile") and ready[0] == 0:
            ready[0] = time.time()

    jax.monitoring.register_event_duration_secs_listener(note)
    from incrt.cli import main
    from incrt.cli.display import Display
    from incrt.cli.train import Train
    from incrt.engine.population import News, Population

    run, update = Train.run, Display.update

    def runs(self: Train) -> None:
        spent["imports"] = time.time() - begun
        run(self)

    def updates(self: Display, population: Population, news: News) -> None:
        if news.reports:
            spent["first_step"] = max(ready[0], built[0]) - begun
            spent["first_stretch"] = time.time() - begun
            sys.stdout.write(json.dumps(spent) + "\n")
            sys.stdout.flush()
            os._exit(0)
        built.append(time.time())
        update(self, population, news)

    built: list[float] = []
    Train.run, Display.update = runs, updates  # type: ignore[method-assign]
    main(command)


def command(window: int, folder: str) -> list[str]:
    """What is timed: the first of the two stretches of a short run."""
    # Were the cores not given, what earlier starts have measured would decide on how many a run trains.
    options = f"--preset memory --tau-z 5 --seeds 42 --window {window} --steps 1000 --cores {usable_cores()}"
    return ["train", *options.split(), "--device", "cpu", "--out", folder]


def timed(window: int, cache: str) -> dict[str, float]:
    """The parts of one start."""
    with tempfile.TemporaryDirectory() as folder:
        started = [sys.executable, __file__, "--begun", str(time.time()), "--", *command(window, folder)]
        done = subprocess.run(started, env=environment(cache), capture_output=True, check=True)  # noqa: S603
    found: dict[str, float] = json.loads(done.stdout)
    return found


def environment(cache: str) -> dict[str, str]:
    """With a cache of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    return {**kept, "INCRT_CACHE": cache}


def fill(window: int, cache: str) -> None:
    """Let one run go to its end, so that all its programs are in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        whole = [sys.executable, "-m", "incrt", *command(window, folder)]
        subprocess.run(whole, env=environment(cache), capture_output=True, check=True)  # noqa: S603


def main() -> None:
    """Print one table a window."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--begun", type=float)
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    if options.begun is not None:
        child(options.begun, options.command)
        return
    for window in options.windows:
        empty, full = [], []
        for _ in range(options.starts):
            with tempfile.TemporaryDirectory() as cache:
                empty.append(timed(window, cache))
        with tempfile.TemporaryDirectory() as cache:
            fill(window, cache)
            full = [timed(window, cache) for _ in range(options.starts)]
        print(f"W = {window}, {options.starts} starts each:{'empty cache':>33s}{'full cache':>12s}", flush=True)
        for part, words in PARTS.items():
            first, second = (median(each.get(part, 0.0) for each in starts) for starts in (empty, full))
            form = "{:.0f}" if part == "programs" else "{:.2f}"
            print(f"  {words:44s}{form.format(first):>12s}{form.format(second):>12s}", flush=True)


if __name__ == "__main__":
    main()
