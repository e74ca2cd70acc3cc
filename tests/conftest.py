"""What all tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The tests' workers have the cores already; more threads in each would wait for one another. Read when libraries load.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Most of the tests' time goes into compiling programs that run once: most of it is saved by not optimising them, and by
# not splitting them into parts for more cores.
os.environ["XLA_FLAGS"] = " ".join(
    [
        "--xla_backend_optimization_level=0",
        "--xla_cpu_parallel_codegen_split_count=1",
        "--xla_cpu_use_fusion_emitters=false",
        os.environ.get("XLA_FLAGS", ""),
    ]
).strip()
# So they are not long in compiling, but processes that tests start still find what their parent has compiled.
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"

import jax
import pytest
from hypothesis import settings

from incrt.storage.cache import keep_compiled

# Compilation makes single examples slow; the examples are the same on every machine.
settings.register_profile("incrt", deadline=None, derandomize=True, max_examples=20)
settings.load_profile("incrt")


_LONG = (
    "studies/test_worker.py",
    "controllers/test_classical.py",
    "studies/test_ray_backend.py",
    "docs/test_readme.py",
    "engine/test_population.py",
    "examples/test_own_parts.py",
    "cli/test_commands.py",
    "cli/test_train.py",
    "sb3/test_saving.py",
    "sb3/test_events.py",
    "report/test_results.py",
    "report/test_archive.py",
)
"""The files that take longest, by their path from here."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: a worker that takes one up last works on it alone.

    Workers keep this order if they are told so: by itself pytest-xdist begins with the files that hold most tests.
    """
    rank = {Path(__file__).parent / name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: rank.get(item.path, len(_LONG)))


@pytest.fixture(scope="session", autouse=True)
def caches_in_a_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's cache is neither read nor written; the workers of one test run share theirs."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INCRT_CACHE", str(folder / "incrt-cache"))
        keep_compiled()  # most of the time goes into compiling, and the workers need the same programs
        yield


@pytest.fixture
def without_friction() -> dict[str, Any]:
    """Fields of a configuration without friction and shield, so that the law can be seen alone."""
    none = (0.0, 0.0)
    return {"coulomb": none, "breakaway": none, "viscous": none, "memory_gain": none, "shield": False}


@pytest.fixture
def float64() -> Iterator[None]:
    """Double precision in JAX for one test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def hears_signals() -> Iterator[None]:
    """A job in the background is started with SIGINT ignored, and then training ignores it too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
