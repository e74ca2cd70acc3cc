"""Kill training with SIGKILL at random moments, resume it each time, and compare with training that was never killed.

Run with ``python benchmarks/kill_resume.py``. Two short runs are trained twice, once in peace and once killed so many
times, at moments drawn evenly from the start of the process to a bit beyond the time that peaceful training takes.
Parameters, optimisers, replay, random streams, events and metrics must be the same to the bit. Only the speed in the
metrics, which the clock decides, is left out of the comparison.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SEEDS = (42, 43)


def train(folder: Path, steps: int) -> None:
    """The runs, small enough for some hundred steps a second; every third check is followed by a checkpoint."""
    import incrt
    from incrt.engine.population import News, Population
    from incrt.engine.training import make_job, train
    from incrt.storage.cache import keep_compiled

    keep_compiled()
    config = incrt.preset(
        task={"window": 8, "horizon": 200},
        encoder={"k_max": 4, "d_k": 4},
        heads={"check_every": 50, "grace": 100, "tokens": 100, "share_batch": 32},
        sac={"steps": steps, "buffer": 1000, "batch": 32, "hidden": (16, 16)},
    )
    jobs = [make_job(folder / f"seed-{seed}", config.replace(seed=seed)) for seed in SEEDS]

    def say(population: Population, news: News) -> None:
        if news.reports:
            print(min(each.step for each in population.progress), flush=True)

    train(jobs, "cpu", save_every=150, on_news=say, warn=lambda text: print(text, file=sys.stderr, flush=True))


def run_child(folder: Path, steps: int, kill_after: float | None = None) -> str:
    """Train in a process of its own; kill it so many seconds after its start. Says how far it came."""
    command = [sys.executable, __file__, "--child", str(folder), "--steps", str(steps)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        printed, _ = child.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        printed, _ = child.communicate()
    if child.returncode not in {0, -signal.SIGKILL}:
        raise SystemExit(f"the child ended with status {child.returncode}")
    lines = printed.split()
    if child.returncode == 0:
        return "over"
    return f"after step {lines[-1]} of {steps}" if lines else "before its first check"


def contents(folder: Path, steps: int) -> dict[str, Any]:
    """All that must not depend on kills."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("**/seed-*/**/*")):
        name = str(path.relative_to(folder))
        if path.name == "metrics.jsonl":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            found[name] = [{key: value for key, value in line.items() if key != "steps_per_s"} for line in lines]
        elif (path.is_file() and "checkpoint" not in name) or path.name == f"{steps:09d}.safetensors":
            found[name] = path.read_bytes()
    return found


def main() -> None:
    """Train in peace, then with kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=4000, help="of a run")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        train(options.child, options.steps)
        return
    steps = options.steps
    moments = random.Random(options.seed)  # noqa: S311
    with tempfile.TemporaryDirectory() as temporary:
        peaceful, killed = Path(temporary) / "peaceful", Path(temporary) / "killed"
        run_child(Path(temporary) / "compiles", steps)
        begin = time.perf_counter()
        run_child(peaceful, steps)
        whole = time.perf_counter() - begin
        expected = contents(peaceful, steps)
        for _ in range(options.kills):
            moment = moments.uniform(0, 1.2 * whole)
            reached = run_child(killed, steps, moment)
            print(f"killed {moment:.1f} s after its start, {reached}", flush=True)
            if reached == "over":  # compare, and begin again
                compare(expected, contents(killed, steps))
                shutil.rmtree(killed)
        run_child(killed, steps)
        compare(expected, contents(killed, steps))


def compare(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Print the verdict; a difference ends the program."""
    unlike = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if unlike:
        raise SystemExit(f"not the same: {', '.join(unlike)}")
    checks = sum(len(lines.splitlines()) for name, lines in found.items() if name.endswith("events.jsonl"))
    print(f"{len(found)} files, {checks} checks: all the same to the bit", flush=True)


if __name__ == "__main__":
    main()
