"""Kill a study, its workers and its nodes at random moments, and compare with the study that was left in peace.

Run with ``python benchmarks/study_kill.py`` for workers on this machine, with ``--backend ray`` for a Ray cluster of
two nodes on this machine. A study process that was killed is started again by the same command; a worker or a node is
the study's own affair (a node that was killed is replaced, as whoever runs a cluster would do it). Whatever the runs
left must be the same to the bit at the end: parameters, optimisers, replay, events, metrics, evaluations.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kill_resume import compare, contents

STUDY = """
about = "Runs small enough for some hundred steps a second."
seeds = "1-2"
regimes = [{ tau_z = 5, window = 5 }]

[common]
task = { horizon = 40, eval_payloads = [0.5], eval_rollouts = 1 }
encoder = { k_max = 3, d_k = 4 }
heads = { check_every = 20, grace = 40, tokens = 30, share_batch = 16 }
sac = { steps = STEPS, buffer = 100, batch = 16, hidden = [8, 8], learning_starts = 10 }

[variants]
grown = {}
"all heads".encoder.encoder = "static"
"""
Kill = Callable[[], str | None]
"""Kills something and says what; None if there is nothing of the kind now."""


class StudyProcess:
    """The study's command, which may be started again and again."""

    def __init__(self, study: Path, out: Path, options: list[str]) -> None:
        command = "from incrt.cli import main; main()"
        self._command = [sys.executable, "-c", command, "study", "run", str(study), "--out", str(out), *options]
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: S603

    def kill(self) -> str:
        """Kill it and start it again."""
        self.process.kill()
        self.process.communicate()
        self.process = self._start()
        return "the study"

    def finish(self) -> None:
        """Wait for its end; one that is not good ends the program."""
        _, said = self.process.communicate()
        if self.process.returncode:
            raise SystemExit(f"the study ended with status {self.process.returncode}: {said.decode()}")


def kill_process(pattern: str) -> str | None:
    """Kill a process by a word of its command line, if it comes from this program."""
    parents: dict[int, int] = {}
    words: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):  # it has just ended
                parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                words[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    for process, command in words.items():
        ancestor = process
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        if pattern in command and ancestor == os.getpid() and process != os.getpid():
            os.kill(process, signal.SIGKILL)
            return f"a worker ({pattern})"
    return None


@contextmanager
def cluster() -> Iterator[tuple[list[str], list[Kill]]]:
    """Two Ray nodes of one core each, beside a head without any; options for the study, and what can be killed."""
    from ray.cluster_utils import Cluster

    ray = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes: list[Any] = [ray.add_node(num_cpus=1), ray.add_node(num_cpus=1)]

    def kill_node() -> str:
        ray.remove_node(nodes.pop(0), allow_graceful=False)
        nodes.append(ray.add_node(num_cpus=1))
        return "a node"

    options = ["--backend", "ray", "--address", ray.address, "--cores", "1"]
    try:
        yield options, [lambda: kill_process("ray::_work"), kill_node]
    finally:
        ray.shutdown()


def disturb(
    study: Path, out: Path, options: list[str], kills: list[Kill], moments: "random.Random", apart: float, count: int
) -> int:
    """Run the study to its end with so many kills, or as many as there is time for; says how many there were."""
    running = StudyProcess(study, out, options)
    done = 0
    while done < count:
        time.sleep(moments.uniform(1, apart))
        if running.process.poll() is not None:
            break
        what = moments.choice([running.kill, *kills])()
        if what is not None:
            done += 1
            print(f"killed {what}", flush=True)
    running.finish()
    return done


def main() -> None:
    """In peace, then with kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("local", "ray"), default="local")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--steps", type=int, default=3000, help="of a run; the fewer, the closer the kills")
    options = parser.parse_args()
    moments, apart = random.Random(options.seed), options.steps / 250  # noqa: S311
    with tempfile.TemporaryDirectory() as temporary:
        study, peaceful, killed = (Path(temporary) / name for name in ("small.toml", "peaceful", "killed"))
        study.write_text(STUDY.replace("STEPS", str(options.steps)))
        StudyProcess(study, peaceful, []).finish()
        expected = contents(peaceful, options.steps)
        left = options.kills
        while left:
            if options.backend == "ray":
                with cluster() as (of_ray, kills):
                    left -= disturb(study, killed, of_ray, kills, moments, apart, left)
            else:
                workers = [lambda: kill_process("incrt.studies.worker")]
                left -= disturb(study, killed, [], workers, moments, apart, left)
            compare(expected, contents(killed, options.steps))
            shutil.rmtree(killed)


if __name__ == "__main__":
    main()
