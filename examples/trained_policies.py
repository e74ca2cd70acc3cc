"""Trained policies on the trajectory that they were trained on, and on another, beside controllers that do not learn.

The policies in ``results/policies`` are those of study main, preset memory, that were in the middle of their ten seeds.
On the trajectory of their training they are better than a friction model without memory, the feedforward; on a faster
one they are worse than constant gains. Run with ``python examples/trained_policies.py``; a minute on two cores.
"""

from pathlib import Path

import incrt

POLICIES = Path(__file__).parent.parent / "results" / "policies"
CONTROLLERS = ("best_constant", "feedforward", "observer")


def compare(tau_z: float, window: int, trajectory: str) -> dict[str, float]:
    """RMSE of the policy of a regime and of the controllers beside it, in per cent of the baseline's, less 100."""
    trained = incrt.TaskConfig(tau_z=tau_z, window=window)
    task = trained.replace(trajectory=trajectory)
    policy = incrt.load_policy(POLICIES / f"tau-{tau_z:g}.safetensors")
    found = {"learned": policy, **{name: incrt.reference_controller(name, trained) for name in CONTROLLERS}}
    baseline = incrt.evaluate(task, incrt.reference_controller("baseline", trained))[0].rmse
    return {name: 100 * (incrt.evaluate(task, each)[0].rmse / baseline - 1) for name, each in found.items()}


def main() -> None:
    """Print a line a regime and trajectory."""
    for trajectory in ("paper", "fast"):
        for tau_z, window in ((1.0, 20), (2.0, 50), (5.0, 20)):
            figures = ", ".join(f"{name} {value:.1f} %" for name, value in compare(tau_z, window, trajectory).items())
            print(f"trajectory {trajectory}, tau_z = {tau_z:g} s: {figures}")


if __name__ == "__main__":
    main()
