"""Settings as version 0.1 wrote them: read by the names of today, or refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from incrt.config import RunConfig
from incrt.config.earlier import describes_task, is_earlier, read_settings, translated

# The settings in the config.json of a run that version 0.1 trained: preset paper, tau_z = 2 s, W = 50.
WRITTEN = """{
  "bench": {"tau_z": 2.0, "dt": 0.01, "substeps": 2, "inertia": [1.2, 0.6], "payload_inertia": [0.8, 0.4],
    "coulomb": [12.42, 8.28], "breakaway": [18.63, 12.42], "stribeck_velocity": 0.1, "viscous": [3.105, 2.07],
    "memory_gain": [24.84, 20.7], "horizon": 500, "window": 50, "reference": "slow", "payload_range": [0.0, 1.5],
    "payload_nominal": 0.75, "payload_std": 0.05, "initial_std": 0.01, "reward_error": 1.0, "reward_velocity": 0.0002,
    "noise_position": 0.0, "noise_velocity": 0.0, "delay": 0, "k_d_range": [20.0, 40.0], "lam_range": [4.0, 6.0],
    "eta_max": [8.0, 5.5], "features": "identity", "tanh_velocity": 0.05, "torque_limit": null, "baseline_k_d": 30.0,
    "baseline_lam": 5.0, "shield": true, "shield_rate": 10.0, "shield_friction": [33.0, 20.0], "shield_slack": 30.0,
    "eval_payloads": [0.0, 0.375, 0.75, 1.125, 1.5], "eval_rollouts": 3, "eval_seed": 0},
  "encoder": {"encoder": "runtime", "k_max": 8, "k_init": null, "d_k": 16, "layer_norm": false, "layers": 2},
  "runtime": {"k_min": 1, "eps_grow": 0.1, "eps_prune": 0.001, "delta_grow": 3, "delta_prune": 3, "grace": 2000,
    "check_every": 500, "tokens": 1000, "alpha": 0.95, "rank": "energy", "share": "absolute", "share_batch": 256,
    "optimiser": "rebuild"},
  "sac": {"steps": 50000, "buffer": 50000, "learning_starts": 100, "batch": 256, "learning_rate": 0.0003,
    "gamma": 0.99, "tau": 0.005, "hidden": [64, 64], "target_entropy": null, "penalty": true, "penalty_limit": 0.001,
    "penalty_rate": 0.01}
}"""


def written(**fields: Any) -> dict[str, Any]:
    """Such settings with some fields changed, by part."""
    found = json.loads(WRITTEN)
    return {part: {**values, **fields.get(part, {})} for part, values in found.items()}


def test_settings_of_version_0_1_are_read_by_the_names_of_today() -> None:
    assert is_earlier(written())
    task = {"tau_z": 2.0, "window": 50, "trajectory": "slow", "eta_max": (8.0, 5.5)}
    reward = {"reward_error": 1.0, "reward_velocity": 2e-4}
    expected = RunConfig().replace(
        task={**task, **reward}, encoder={"layer_norm": False}, heads={"optimiser": "rebuild"}, seed=9
    )
    assert read_settings(written(), seed=9) == expected


def test_settings_of_today_are_left_as_they_are() -> None:
    found = RunConfig().to_json()
    assert not is_earlier(found)
    assert translated(found) == found


def test_a_task_is_found_by_the_name_of_either_version() -> None:
    assert describes_task(written())
    assert describes_task(RunConfig().to_json())
    assert not describes_task({part: values for part, values in written().items() if part != "bench"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"bench": {"features": "tanh_viscous"}},
            "with task.features other than 'identity', which version 0.2 no longer has",
        ),
        ({"runtime": {"rank": "entropy"}}, "with heads.rank other than 'energy', which version 0.2 no longer has"),
        ({"bench": {"gravity": 9.81}}, "unknown field gravity"),
    ],
)
def test_what_only_version_0_1_could_do_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_settings(written(**changes))


def test_the_settings_in_the_results_can_be_read() -> None:
    """The results of the paper's studies were made by version 0.1."""
    record = json.loads((Path(__file__).parents[2] / "results" / "record.json").read_text())
    found = [cell for study in record["studies"] for cell in study["configuration"].items()]
    assert len(found) > 10
    for name, settings in found:
        assert name.endswith(f"tau_z = {read_settings(settings).task.tau_z:g} s")


def test_an_object_of_the_users_own_cannot_be_read_from_a_file() -> None:
    settings = RunConfig().to_json()
    settings["task"]["robot"] = {"class": "mine.Arm", "numbers": "0123"}
    with pytest.raises(ValueError, match=r"its robot is an object of the user's own \(mine.Arm\), which no file holds"):
        read_settings(settings)
