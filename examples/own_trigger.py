"""A trigger of one's own: a head is grown when the return has not risen for a while, and a weak one goes at once.

A trigger is anything with ``decide(signals, state)``; what it remembers is JSON, so a run can be stopped and resumed.
The same object decides in the engine and in Stable-Baselines3. From the command line:
``incrt train --trigger examples/own_trigger.py:Patience --out runs``. Needs the extra ``sb3``; run with
``python examples/own_trigger.py FOLDER``, two minutes on two cores.
"""

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
from stable_baselines3 import SAC

import incrt
from incrt.heads.triggers import Decision, Signals


class Patience:
    """Grows after so many checks without a better return; prunes the weakest head below a share."""

    def __init__(self, checks: int = 2, share: float = 0.02) -> None:
        self.checks, self.share = checks, share

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        """One decision, and what to remember until the next."""
        best, waited = state or (None, 0)
        if signals.returns is not None:
            better = best is None or signals.returns > best
            best, waited = (signals.returns, 0) if better else (best, waited + 1)
        shares = {head: share for head, share in enumerate(signals.shares or ()) if signals.mask[head]}
        weakest = min(shares, key=lambda head: shares[head])
        if signals.k > 1 and shares[weakest] < self.share and waited == 0:
            return Decision("prune", f"share {shares[weakest]:.2g} < {self.share:g}", weakest), [best, 0]
        if waited >= self.checks and not all(signals.mask):
            return Decision("grow", f"no better return for {waited} checks"), [best, 0]
        return Decision("noop", f"waited {waited} of {self.checks} checks"), [best, waited]


def train(folder: Path, steps: int = 5000, horizon: int = 500, **heads: Any) -> list[Path]:
    """The same trigger in both, on episodes of so many steps; the files that have the checks of each."""
    heads = {"trigger": Patience(), "check_every": horizon, **heads}
    sac = {"steps": steps, "hidden": (32, 32), "batch": 64}
    config = incrt.preset("memory", task={"horizon": horizon}, encoder={"k_max": 4}, heads=heads, sac=sac)
    incrt.train([incrt.make_job(folder / "engine", config)])
    env, kwargs = gym.make("incrt/Stribeck-v0", horizon=horizon), incrt.sb3.policy_kwargs(k_max=4, net_arch=[32, 32])
    model = SAC("MlpPolicy", env, policy_kwargs=kwargs, buffer_size=steps, batch_size=64, seed=0)
    model.learn(steps, callback=incrt.sb3.RuntimeHeads(events=folder / "sb3.jsonl", **heads))
    return [folder / "engine" / "events.jsonl", folder / "sb3.jsonl"]


if __name__ == "__main__":
    for path in train(Path(sys.argv[1] if len(sys.argv) > 1 else "own_trigger")):
        print(path)
        for check in map(json.loads, path.read_text().splitlines()):
            print(f"  step {check['step']:5}  K = {check['k']}  {check['action']}: {check['reason']}")
