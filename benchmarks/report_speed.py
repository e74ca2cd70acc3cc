"""How long the report of 500 finished runs takes.

Run with ``python benchmarks/report_speed.py``. The runs are made up, but their files are as training leaves them: one
line a check and a stretch, evaluations, episodes. ``incrt report`` then runs in a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from incrt.controllers.evaluation import Evaluation
from incrt.runs import COMPARED, reference_rows
from incrt.studies.store import EPISODES, PlannedRun, Store
from incrt.studies.study import load_study

RMSE = {
    "baseline": 0.13,
    "best_constant": 0.085,
    "feedforward": 0.03,
    "open_loop": 0.005,
    "adaptive": 0.006,
    "observer": 0.007,
    "clairvoyant": 0.004,
}


def evaluation(rmse: float) -> Evaluation:
    """Figures that go with an RMSE."""
    return Evaluation(rmse, rmse < 0.1, 3 * rmse, 20.0, 400.0, 0.0, 1.0, 0.0, 0.0, {"0.75": rmse})


def make_up(run: PlannedRun, random: np.random.Generator) -> None:
    """What a finished run leaves."""
    run.folder.mkdir(parents=True)
    grows = run.cell.config.encoder.encoder == "runtime"
    checks, stretches, k = [], [], 1 if grows else run.cell.config.encoder.heads_at_start
    for step in range(500, run.cell.config.sac.steps + 1, 500):
        is_event = grows and k < run.cell.config.encoder.k_max and step >= 1500 and (step - 1500) % 3000 == 0
        k += is_event
        shares = [1 / k] * k + [0.0] * (run.cell.config.encoder.k_max - k)
        check: dict[str, Any] = {"step": step, "action": "grow" if is_event else "noop", "reason": "", "k": k}
        checks.append({**check, "rank": float(random.integers(30, 40)), "shares": shares})
        if is_event:
            checks[-1] |= {"head": k - 1, "jump": 0.0, "bound": 0.0, "holds": True}
        stretches.append(
            {"step": step, "return": -1e4 / step + random.normal(), "critic_loss": 1.0, "steps_per_s": 9.0}
        )
    steps = run.cell.config.sac.steps
    guarantees = {"inside": True, "rank_settled": False}
    conclusion = {
        "steps": steps,
        "heads": k,
        "failure": None,
        "guarantees": guarantees if grows else None,
    }
    rmse = 0.015 + 0.002 * float(random.random())
    found = {**{name: evaluation(value) for name, value in RMSE.items()}, "learned": evaluation(rmse)}
    beside = {f"{name}_rmse": RMSE[name] for name in COMPARED}
    figures = {**reference_rows({"seed": run.seed}, found)[-1], **beside, "training": conclusion}
    maker = {"from_step": 0, "incrt": "made up", "device": "none"}
    for name, content in (("config", {"made_by": [maker]}), ("conclusion", conclusion), ("eval", figures)):
        (run.folder / f"{name}.json").write_text(json.dumps(content))
    lines = {"events": checks if grows else [], "metrics": stretches}
    for name, entries in lines.items():
        (run.folder / f"{name}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    shape, time_axis = (5, 250, 2), np.linspace(0, 5, 250, dtype=np.float32)
    moving = np.broadcast_to(np.sin(time_axis)[None, :, None], shape).astype(np.float32)
    window = np.full((25, k, run.cell.config.task.window), 1 / run.cell.config.task.window, np.float32)
    tensors = {name: moving.copy() for name in ("q", "q_d", "torque", "k_d", "lam", "eta")}
    tensors |= {"payloads": np.linspace(0, 1.5, 5, dtype=np.float32), "time": time_axis, "attention": window}
    safetensors.numpy.save_file({**tensors, "attention_time": time_axis[::10].copy()}, run.folder / EPISODES)


def main() -> None:
    """Make up the runs, make the report, print how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as temporary:
        store = Store(Path(temporary))
        names = ("main", "static", "k_max", "grace", "encoders", "optimiser", "sensitivity")
        seeds = range(options.runs)
        found: set[Path] = set()
        used = max(1, options.runs // len({cell.key for name in names for cell in load_study(name, "memory").cells}))
        for name in names:
            study, _ = store.enter(load_study(name, "memory", seeds[: used + 1]))
            for run in store.planned(study):
                if run.folder not in found and len(found) < options.runs:
                    found.add(run.folder)
                    make_up(run, random)
                path = store.references(run.cell.config.task, {})
                path.parent.mkdir(exist_ok=True)
                beside = {name: evaluation(rmse) for name, rmse in RMSE.items()}
                path.write_text(json.dumps(reference_rows({"tau_z": run.cell.config.task.tau_z}, beside)))
        code = "from incrt.cli import main; main()"
        command = [sys.executable, "-c", code, "report", temporary, "--json"]
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        seconds = time.perf_counter() - begin
        page = Path(temporary) / "report" / "report.html"
        figures = len(list((Path(temporary) / "report" / "figures").rglob("*.png")))
        size = page.stat().st_size / 1e6
        print(f"{len(found)} runs of {len(names)} studies: {seconds:.1f} s, {figures} figures, a page of {size:.1f} MB")


if __name__ == "__main__":
    main()
