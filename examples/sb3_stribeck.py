"""Stable-Baselines3's SAC on the arm whose friction has a memory, with attention heads that grow while it learns.

Two lines make the difference to a stock training: ``policy_kwargs`` and the callback. In the end the policy stands
beside what a control engineer would compare it with, and its folder is one that ``incrt evaluate`` reads. Needs the
extra ``sb3``; run with ``python examples/sb3_stribeck.py FOLDER``, some four minutes on two cores for 10 000 steps,
which end at an RMSE of 0.0367 rad (baseline 0.1301, best constant gains 0.0854, observer 0.0054, clairvoyant 0.0042).
"""

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
from stable_baselines3 import SAC

import incrt


def train(folder: Path, steps: int = 10_000, **growth: Any) -> SAC:
    """Train, and leave events.jsonl, the model and the folder of a run behind; ``growth`` is for RuntimeHeads."""
    env = gym.make("incrt/Stribeck-v0", tau_z=5.0)
    kwargs = incrt.sb3.policy_kwargs(k_max=8, net_arch=[64, 64])
    # Stable-Baselines3 stores every window whole, and twice: room for a million would be 1.8 GB.
    model = SAC("MlpPolicy", env, policy_kwargs=kwargs, buffer_size=steps, seed=42)
    model.learn(steps, callback=incrt.sb3.RuntimeHeads(events=folder / "events.jsonl", **growth))
    model.save(folder / "model")
    incrt.sb3.save_policy(model, folder / "run")
    return model


def main(folder: Path) -> None:
    """Train and compare."""
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty; choose another folder")
    model = train(folder, grace=2000, check_every=500)
    task = incrt.TaskConfig(tau_z=5.0)
    learned, _ = incrt.evaluate_policy(task, lambda contexts: model.predict(contexts, deterministic=True)[0])
    found = {"learned": learned}
    for name in ("baseline", "best_constant", "observer", "clairvoyant"):
        found[name], _ = incrt.evaluate(task, incrt.reference_controller(name, task))
    for name, figures in found.items():
        print(f"{name:14s} RMSE {figures.rmse:.4f} rad, total variation of the torque {figures.torque_tv:.0f} N m")
    print(f"heads: {model.policy.actor.features_extractor.k}; incrt evaluate {folder / 'run'} says the rest")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "sb3_stribeck"))
