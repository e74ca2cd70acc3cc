"""A study small enough for tests: its runs train in seconds."""

from pathlib import Path
from typing import Any

from incrt.studies.assignments import Assignment, split
from incrt.studies.store import Store
from incrt.studies.study import Study, load_study

SMALL = """
about = "Small runs."
seeds = "1-2"
regimes = [{ tau_z = 5, window = 5 }]
compare = "grown"

[common]
task = { horizon = 40, eval_payloads = [0.5], eval_rollouts = 1 }
encoder = { k_max = 3, d_k = 4 }
heads = { check_every = 20, grace = 40, tokens = 30, share_batch = 16 }
sac = { steps = 140, buffer = 100, batch = 16, hidden = [8, 8], learning_starts = 10 }

[variants]
grown = {}
"all heads".encoder.encoder = "static"

[conditions]
"payload 1 kg".eval_payloads = [1.0]
"""


TESTS: dict[str, dict[str, Any]] = {"": {}, "payload 1 kg": {"eval_payloads": [1.0]}}


def small_study(folder: Path, text: str = SMALL, preset: str = "memory") -> Study:
    """The study declared by this text, in a file of its own."""
    path = folder / "small.toml"
    path.write_text(text)
    return load_study(str(path), preset)


def one_assignment(store: Store, study: Study) -> Assignment:
    """All runs of a study in one batch on the CPU."""
    (assignment,) = split(store, study, store.planned(study), 10_000, "cpu", None)
    return assignment
