"""What a capacity study trains."""

from pathlib import Path

import pytest

from incrt.capacity.plan import declared_studies, load_study
from incrt.tasks.recall import Recall

DECLARED = """
about = "Try."
task = "recall"
channels = [1, 3]
seeds = "0-1"
[common]
encoder = { k_max = 4, d_k = 4 }
sac = { steps = 3000 }
[variants]
growing.heads.trigger = "clock"
"fixed, K = D".encoder = { encoder = "static", k_init = "D" }
"fixed, K = D".seeds = "7"
"""


def declare(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_the_studies_of_the_library_can_all_be_planned() -> None:
    studies = declared_studies()
    assert {"recall", "actuators", "needed", "causes"} <= studies.keys()
    for name, study in studies.items():
        plan = study.planned(Path("runs"))
        assert len({run.folder for run in plan}) == len(plan) > 0, name
        assert study.compare is None or study.compare in study.variants


def test_a_plan_has_a_run_for_each_channel_count_variant_and_seed(tmp_path: Path) -> None:
    study = load_study(declare(tmp_path, DECLARED))
    plan = study.planned(tmp_path)
    found = [(run.channels, run.variant, run.seed) for run in plan]
    growing = [(d, "growing", seed) for d in (1, 3) for seed in (0, 1)]
    assert sorted(found) == sorted([*growing, (1, "fixed, K = D", 7), (3, "fixed, K = D", 7)])
    fixed = next(run for run in plan if (run.channels, run.variant) == (3, "fixed, K = D"))
    assert fixed.job.run.encoder.k_init == 3
    assert fixed.job.run.environment == Recall(3, 8)
    assert fixed.folder == tmp_path / "mine/D3/fixed-K-D/seed-7"


def test_seeds_and_channels_of_the_command_take_the_place_of_the_declared(tmp_path: Path) -> None:
    plan = load_study(declare(tmp_path, DECLARED), seeds=[5], channels=[3]).planned(tmp_path)
    assert [(run.channels, run.variant, run.seed) for run in plan] == [(3, "growing", 5), (3, "fixed, K = D", 5)]
    with pytest.raises(ValueError, match=r"channels must be among \[1, 3\], got \[2\]"):
        load_study(declare(tmp_path, DECLARED), channels=[2])


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('task = "recall"', 'task = "chess"', "task must be one of recall"),
        ("channels = [1, 3]", "channels = [0]", "channels must be a whole number >= 1"),
        ("channels = [1, 3]", "channels = 2", "channels must be a list, got 2"),
        ("channels = [1, 3]", "channels = []", "channels must have at least one entry"),
        ("channels = [1, 3]", "channels = [2, 2]", "must differ"),
        ('seeds = "0-1"', "seeds = 5", 'seeds must be text such as "200-219", got 5'),
        ("encoder = { k_max = 4, d_k = 4 }", "encoder = 3", "encoder of common must hold tables"),
        ("sac = { steps = 3000 }", "sac = { steps = 3000, evaluations = 0 }", "sac.evaluations must be at least 1"),
        ("growing.heads", '"growing!" = {}\ngrowing.heads', "letters and digits of the variants' names must differ"),
        ('about = "Try."', "", "about must be given"),
        ('about = "Try."', 'about = "Try."\nextra = 1', "unknown key extra"),
        ('about = "Try."', 'about = "Try."\ncompare = "none"', "compare must be one of growing"),
        ("k_max = 4", "k_max = 2", "k_init must be at most k_max = 2"),
        ('growing.heads.trigger = "clock"', "growing.head.grace = 1", "unknown part head"),
        ('growing.heads.trigger = "clock"', 'growing.heads.trigger = "none"', "trigger must be one of .*paper"),
        ('growing.heads.trigger = "clock"', "growing.task.colour = 1", "colour"),
        ('seeds = "0-1"', 'seeds = "x"', "seeds"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(tmp_path: Path, before: str, after: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        load_study(declare(tmp_path, DECLARED.replace(before, after, 1)))


def test_a_study_that_there_is_not_is_answered_by_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"accepted: .*causes.*recall"):
        load_study("nothing")
