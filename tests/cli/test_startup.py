"""What a command needs before it can begin."""

import subprocess
import sys

import jax
import pytest
from compilations import compilations

from incrt import make_task
from incrt.config import preset

SLOW = ("matplotlib", "polars", "scipy", "torch", "jinja2", "ray", "tensorboard", "stable_baselines3")


@pytest.mark.parametrize("arguments", [["--version"], ["train", "--help"]])
def test_a_command_does_not_import_what_others_need(arguments: list[str]) -> None:
    program = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(*(name for name in {SLOW} if name in sys.modules), file=sys.stderr))\n"
        "from incrt.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""


def test_a_task_is_made_without_many_small_programs() -> None:
    jax.clear_caches()
    with compilations() as found:
        make_task(preset("memory").task)
    assert len(found) <= 8, found
