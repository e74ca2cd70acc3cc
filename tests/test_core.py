"""The core runs with jax, numpy, optax, safetensors and threadpoolctl alone."""

import subprocess
import sys
import tomllib
from pathlib import Path

PROGRAM = """
import sys

ABSENT = set(sys.argv[1:])

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, Refuse())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "gymnasium" else found(name, package)

import incrt
from incrt import *
config = incrt.preset(task={"horizon": 10, "eval_payloads": (0.5,), "eval_rollouts": 1}).task
import jax, numpy
from incrt import offline, runs
from incrt.heads import certificates, encoders, growth, guarantees, rank, triggers
encoder = encoders.make_encoder(incrt.EncoderConfig(), config.window, config.observation_dim)
contexts = jax.numpy.ones((4, config.window, config.observation_dim))
encoder.features(encoder.init(jax.random.key(0)), encoder.first_mask, contexts)
import pathlib, tempfile
from incrt.storage.cache import keep_compiled
from small_runs import RUN
keep_compiled()
with tempfile.TemporaryDirectory() as folder:
    incrt.train([incrt.make_job(folder, RUN)])
    incrt.evaluate(RUN.task, incrt.load_policy(pathlib.Path(folder) / "policy.safetensors"))
try:
    incrt.sb3
except ModuleNotFoundError as error:
    assert "the extra sb3 of incrt" in str(error), error
else:
    raise AssertionError("incrt.sb3 works without Stable-Baselines3")
print(incrt.evaluate(config, incrt.reference_controller("baseline", config))[0].rmse)
"""


def kept_out() -> list[str]:
    """The libraries that the core may not import, as the import contract names them."""
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    core = next(contract for contract in contracts if contract["name"].startswith("The core needs"))
    return [name for name in core["forbidden_modules"] if not name.startswith("incrt.")]


def test_core_runs_where_nothing_else_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *kept_out()],
        cwd=Path(__file__).parent / "helpers",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0
