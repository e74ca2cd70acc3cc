"""Heads that are earned: the critic asks for them, and those that the others can make up for are pruned.

Stable-Baselines3's SAC swings up a pendulum whose velocity it cannot see, from four heads on. At each check trigger
``earned`` is shown what the critic leaves unexplained of its own targets and what each head is worth. Before a prune
the others learn, by least squares, to put out what the head does; how far the policy would still move is known before
anything happens, and events.jsonl has it beside how far it did. Needs the extra ``sb3``; run with
``python examples/sb3_earned.py SEED``, about half a minute on two cores. Mean return of 10 episodes after 3000 steps,
and how K came to what it is in the end (a pendulum that hangs still gets -1974):

    seed 0    -164.8    K = 4, 3, 2, 3, 4, 3
    seed 1    -530.6    K = 4, 3, 2, 3, 4
    seed 2    -179.9    K = 4, 3, 4, 3, 4

Each prune moved the policy by at most 0.0021 of half its range, as promised.
"""

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TransformObservation
from stable_baselines3 import SAC
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import incrt

EPISODES = 10
"""Of the deterministic policy, for the verdict."""


def make_env() -> gym.Env[Any, Any]:
    """Pendulum-v1 whose observation is (cos theta, sin theta), and the latest eight of them a context."""
    env: gym.Env[Any, Any] = TransformObservation(
        gym.make("Pendulum-v1"), lambda seen: seen[:2], gym.spaces.Box(-1, 1, (2,), np.float32)
    )
    return Monitor(incrt.env.ContextWindow(env, window=8))


def train(seed: int, steps: int, events: Path | None = None, **growth: Any) -> Any:
    """Train one seed; ``growth`` are settings of :class:`incrt.sb3.RuntimeHeads`."""
    model = SAC(
        "MlpPolicy",
        make_env(),
        learning_rate=1e-3,
        buffer_size=20_000,
        batch_size=128,
        policy_kwargs=incrt.sb3.policy_kwargs(k_max=4, k_init=4, d_k=8, net_arch=[64, 64]),
        seed=seed,
        device="cpu",
    )
    # What is left is measured against targets that are the critic's own guess, so that it is small from the start: with
    # the default of 0.02 no head would be asked for.
    settings = {"trigger": "earned", "enough": 0.001, "check_every": 100, "grace": 400, **growth}
    return model.learn(steps, callback=incrt.sb3.RuntimeHeads(events=events, **settings))


def main(seed: int = 0, steps: int = 3000) -> None:
    """Train, and tell of every event."""
    model = train(seed, steps)
    for check in model.runtime_heads.checks:
        if check.certificate is not None:
            promised = getattr(check.certificate, "promised", 0.0)  # a growth changes nothing
            words = f"promised a jump of {promised:.6f}, it was {check.certificate.jump:.6f}"
            print(f"step {check.step:4d}: {check.decision.action:5s} K = {check.k}, {words}; {check.decision.reason}")
    env = make_env()
    env.reset(seed=1000)
    score = float(np.mean(evaluate_policy(model, env, EPISODES)[0]))
    print(f"seed {seed}: mean return {score:.1f}, K = {model.actor.features_extractor.k}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
