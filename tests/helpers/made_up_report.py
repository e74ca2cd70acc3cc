"""Made-up data of a whole report: all studies, both presets, what runs leave on their way. Always the same."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import made_up
import numpy as np
import pytest

from incrt.controllers.tuning import CONTROLLERS
from incrt.report import schema
from incrt.report.data import Dataset, History, StudyRecord, cell_name, command_for
from incrt.report.schema import COMMANDS, RUNS, Row, to_frame
from incrt.storage.records import Command, Episodes
from incrt.studies.study import comparisons

REGIMES = {1.0: 20, 2.0: 50, 5.0: 20}
MIDDLE = {2.0: 50}
CONDITIONS: dict[str, dict[str, Any]] = {
    "payload 2 kg": {"eval_payloads": [2.0]},
    "payload 3 kg": {"eval_payloads": [3.0]},
    "reference fast": {"trajectory": "fast"},
    "noise high": {"noise_q": 1e-3},
    "delay 1": {"delay_steps": 1},
    "delay 3": {"delay_steps": 3},
}
STUDIES: Mapping[str, tuple[tuple[str, ...], Mapping[float, int]]] = {
    "main": (("runtime",), REGIMES),
    "static": (("runtime", "static K=2 (phase 1)", "static K=7", "static K=8"), REGIMES),
    "k_max": (("K_max 2", "K_max 4", "K_max 8", "K_max 16"), MIDDLE),
    "grace": (("grace 1000", "grace 2000", "grace 5000"), MIDDLE),
    "encoders": (("runtime", "static", "deep", "gru", "lstm", "none"), REGIMES),
    "optimiser": (("carry", "rebuild"), REGIMES),
    "sensitivity": (
        ("default", *(f"{name} {value}" for name in ("eps_grow", "alpha", "N") for value in (1, 2))),
        MIDDLE,
    ),
    "robustness": (("runtime", "static K=8"), REGIMES),
}
_SAME = {
    "K_max 8": "runtime",
    "grace 2000": "runtime",
    "default": "runtime",
    "static": "static K=8",
    "carry": "runtime",
}
_MEANS = {"paper": -46.0, "memory": -89.0}
_CONTROLLERS = {
    preset: dict(zip(CONTROLLERS, deltas, strict=True))
    for preset, deltas in {
        "paper": (0.0, -34.0, -58.0, -59.0, -36.0, -52.0, -59.0),
        "memory": (0.0, -34.0, -76.0, -96.0, -41.0, -80.0, -97.0),
    }.items()
}


def without_figures(patch: pytest.MonkeyPatch) -> None:
    """Reports without figures, which take long, and without waiting for the disk."""
    patch.setattr("incrt.report.build.make_charts", lambda _: [])
    patch.setattr("incrt.report.build.write_all_stills", lambda _: None, raising=False)
    patch.setattr("incrt.storage.atomic.os.fsync", lambda _: None)


def report_dataset(
    presets: Sequence[str] = ("paper", "memory"),
    studies: Mapping[str, tuple[tuple[str, ...], Mapping[float, int]]] = STUDIES,
    seeds: int = 10,
) -> Dataset:
    """Everything that a report can be made of."""
    records = [_record(name, preset, *studies[name], seeds) for preset in presets for name in studies]
    rows = [row for record in records for row in _rows(record)]
    controllers = [
        _controller(record, tau_z, condition, controller)
        for record in records
        for tau_z, _ in record.regimes
        for condition in ("", *record.conditions)
        for controller in _CONTROLLERS[record.preset]
    ]
    by_folder = {row["folder"]: row for row in rows}
    episodes = {
        folder: _episodes(run)
        for folder, run in by_folder.items()
        if (run["seed"], run["variant"], run["failure"]) == (44, "runtime", None)
    }
    made_by = [{"incrt": "0.1.0", "commit": "0123456", "device": "made up"}]
    commands = [Command("main", "memory", "42-51", 128, "2026-01-01 12:00 UTC", 100.0, 30, 50.0, 30.0, 15.0)]
    histories = {key: _history(run) for key, run in by_folder.items()}
    frames = to_frame(rows, RUNS), to_frame(controllers, schema.CONTROLLERS)
    return Dataset(records, *frames, histories, episodes, made_by, to_frame(map(vars, commands), COMMANDS))


def _record(name: str, preset: str, variants: tuple[str, ...], regimes: Mapping[float, int], seeds: int) -> StudyRecord:
    return StudyRecord(
        name=name,
        preset=preset,
        about=f"What study {name} is about.",
        seeds=tuple(range(42, 42 + seeds)),
        variants=variants,
        compare=comparisons(variants[0], variants),
        regimes=tuple(regimes.items()),
        conditions=CONDITIONS if name == "robustness" else {},
        trained_by=("main", "static") if name == "robustness" else (),
        runs_wanted=len(variants) * len(regimes) * seeds,
        failed=(("runtime-tau2-w50/seed-60", "no space left on device"),) if name == "main" else (),
        unread=(),
        configuration={
            cell_name(variant, tau_z): {
                "task": {"preset": preset, "tau_z": tau_z, "window": window},
                "encoder": {"encoder": _SAME.get(variant, variant)},
                "sac": {"steps": 50_000},
            }
            for variant in variants
            for tau_z, window in regimes.items()
        },
        command=command_for(name, preset, range(42, 42 + seeds)),
    )


def _random(*words: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(words).encode()))


def _rows(record: StudyRecord) -> list[Row]:
    found = []
    for variant in record.variants:
        for tau_z, window in record.regimes:
            for seed in record.seeds:
                run = _run(record, variant, tau_z, window, seed)
                found.append(run)
                found += [_under(run, condition) for condition in record.conditions]
    return found


def _run(record: StudyRecord, variant: str, tau_z: float, window: int, seed: int) -> Row:
    own = _SAME.get(variant, variant)
    random = _random(record.preset, own, tau_z, seed)
    # The mean differs by variant and regime, the spread by preset.
    offset = _random(own, tau_z).normal() * (5 if record.preset == "paper" else 2)
    delta = _MEANS[record.preset] + offset + random.normal() * (8 if record.preset == "paper" else 1.5)
    best, least = (_CONTROLLERS[record.preset][name] for name in ("best_constant", "clairvoyant"))
    diverged = (own, tau_z, seed) == ("static K=7", 5.0, 43)
    growing = not own.startswith("static") and own not in {"deep", "gru", "lstm", "none"}
    words = own.replace(",", "").split()
    cap = int(words[1]) if words[0] == "K_max" else 8
    return made_up.a_run(
        record.name,
        variant,
        tau_z,
        None if diverged else round(delta, 3),
        preset=record.preset,
        window=window,
        seed=seed,
        folder=f"{record.preset}-{own}-tau{tau_z:g}-w{window}/seed-{seed}",
        failure="the loss is not finite" if diverged else None,
        headroom_closed=None if diverged else (delta - best) / (least - best),
        k_max=cap,
        heads=cap if growing else 0,
        grows=cap - 1 if growing else 0,
        certificates_held=cap - 1 if growing else 0,
        encoder="runtime" if growing else words[0],
    )


def _under(run: Row, condition: str) -> Row:
    worse, delta = _random(condition).uniform(0, 40), run["delta_pct"]
    return {**run, "condition": condition, "delta_pct": None if delta is None else delta + worse}


def _controller(record: StudyRecord, tau_z: float, condition: str, controller: str) -> Row:
    preset = record.preset
    delta = _CONTROLLERS[preset][controller] * (1 - 0.01 * tau_z)
    best, least = _CONTROLLERS[preset]["best_constant"], _CONTROLLERS[preset]["clairvoyant"]
    closed = (_CONTROLLERS[preset][controller] - best) / (least - best)
    rmse = 0.13 * (1 + delta / 100)
    values = (record.name, preset, "", tau_z, condition, controller, rmse, delta, closed, 0.3, 10.0, 900.0)
    return dict(zip((column.name for column in schema.CONTROLLERS), values, strict=True))


def _history(run: Row) -> History:
    random = _random(run["folder"])
    length = 40_000 if run["seed"] == 42 else 50_000  # one seed is shorter than the others
    steps = np.arange(500.0, length + 1, 500)
    returns = -100 * np.exp(-steps / 9000) - 12 + random.normal(size=len(steps))
    returns[0] = np.nan
    grows = np.arange(1500.0, 1500 + 3000 * run["grows"], 3000)
    checks = steps[2:]
    heads = 1 + np.searchsorted(grows, checks, side="right")
    active = np.arange(run["k_max"]) < heads[:, None]
    weights = active * random.uniform(0.7, 1.3, size=active.shape)
    return History(
        k_init=1 if run["grows"] else max(run["heads"], 1),
        steps=steps,
        returns=returns,
        event_steps=grows,
        event_actions=("grow",) * run["grows"],
        event_heads=np.arange(2.0, run["grows"] + 2),
        check_steps=checks if run["heads"] else checks[:0],
        ranks=(11 + random.normal(size=len(checks)) * 0.5) if run["heads"] else checks[:0],
        shares=weights / weights.sum(axis=1, keepdims=True) if run["heads"] else np.zeros((0, run["k_max"])),
    )


def _episodes(run: Row) -> Episodes:
    random = _random(run["folder"], "episodes")
    payloads, time = np.array([0.0, 0.375, 0.75, 1.125, 1.5]), np.arange(500) / 100
    q_d = np.tile(np.stack([0.5 * np.sin(time), 0.3 * np.sin(1.5 * time)], axis=-1), (5, 1, 1))
    error = 0.05 * (1 + payloads[:, None, None]) * np.cos(2 * time)[None, :, None] * np.array([1.0, 0.7])
    weights = random.uniform(size=(25, run["heads"], run["window"])) ** 3 * np.linspace(0.2, 1, run["window"])
    return Episodes(
        payloads=payloads,
        time=time,
        q=q_d - error,
        q_d=q_d,
        torque=20 * np.sign(np.cos(time))[None, :, None] * np.array([1.0, 0.6]) + 100 * error,
        k_d=30 + 100 * error,
        lam=5 + 10 * error,
        eta=20 * np.sign(np.cos(time))[None, :, None] + 10 * error,
        attention=weights / weights.sum(axis=-1, keepdims=True),
        attention_time=time[::20],
    )
