"""Fields on the command line: --set, the list of settings, and the sentences of the help."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from incrt.cli import main
from incrt.cli.options import with_settings
from incrt.cli.train import Train
from incrt.config import RunConfig, SacConfig, TaskConfig, preset
from incrt.config.run import PARTS

# --- --set ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "part", "field", "value"),
    [
        ("task.eta_max=[8, 5.5]", "task", "eta_max", (8.0, 5.5)),
        ("task.k_d_range=[[20, 40], [25, 35]]", "task", "k_d_range", ((20.0, 40.0), (25.0, 35.0))),
        ("encoder.layer_norm=false", "encoder", "layer_norm", False),
        ('heads.optimiser="rebuild"', "heads", "optimiser", "rebuild"),
        ("sac.gamma = 0.98", "sac", "gamma", 0.98),
        ("sac.batch=1_00", "sac", "batch", 100),
        ("task.torque_limit=[5.0,4.0]", "task", "torque_limit", (5.0, 4.0)),
    ],
)
def test_a_text_sets_one_field_and_nothing_else(text: str, part: str, field: str, value: Any) -> None:
    found = with_settings(RunConfig(), [text])
    assert getattr(getattr(found, part), field) == value
    assert found == RunConfig().replace(**{part: {field: value}})
    assert found != RunConfig()


def test_relations_are_checked_in_the_end() -> None:
    found = with_settings(RunConfig(), ["heads.check_every=3000", "heads.grace=4000"])
    assert (found.heads.check_every, found.heads.grace) == (3000, 4000)


def test_a_field_is_not_set_twice() -> None:
    with pytest.raises(ValueError, match=r"--set sac\.gamma=0\.8: this field is set twice"):
        with_settings(RunConfig(), ["sac.gamma=0.9", "sac.gamma=0.8"])


@pytest.mark.parametrize(
    ("options", "name"),
    [(("--set", "task.delay=1", "--set=task.dt=0.02"), "--set"), (("--shield", "--no-shield"), "--shield")],
)
def test_an_option_that_is_given_twice_is_refused(
    options: tuple[str, ...], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The parser would take the second and lose the first unseen."""
    with pytest.raises(SystemExit):
        main(["train", "--out", "nowhere", *options])
    assert f"incrt: {name} is given twice; an option that takes several values" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tau_z=5", r"--set takes PART.FIELD=VALUE with a part among task, encoder, heads, sac; got 'tau_z=5'"),
        ("task.tau_z", "--set takes PART.FIELD=VALUE"),
        ("bench.tau_z=5", "--set takes PART.FIELD=VALUE"),
        ("", "--set takes PART.FIELD=VALUE"),
        ("task.=5", "unknown field ; accepted"),
        ("task.tau=5", "unknown field tau; accepted"),
        ("task.tau_z=", "--set task.tau_z=: .*; texts stand in quotes, lists in brackets"),
        ("task.robot=two_link", "--set task.robot=two_link: .*; texts stand in quotes"),
        ("task.eta_max=[8", "--set task.eta_max=.*; texts stand in quotes, lists in brackets"),
        ("task.tau_z=-1", "tau_z must be a number > 0"),
        ('task.tau_z="5"', "tau_z must be a number, got '5'"),
        ("task.eta_max=[1, 2, 3]", "must have 3 entries, one a joint as eta_max"),
        ("sac.buffer=3", "buffer must be at least 1020"),
    ],
)
def test_a_text_that_sets_nothing_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        with_settings(RunConfig(), [text])


def test_settings_reach_the_run_over_the_preset_and_beside_the_options(tmp_path: Path) -> None:
    texts = ("task.eta_max=[9, 6]", "sac.gamma=0.9", "heads.tokens=500")
    config = Train(out=tmp_path, preset="paper", tau_z=2.0, set=texts).config()
    changes = {"task": {"tau_z": 2.0, "eta_max": (9, 6)}, "sac": {"gamma": 0.9}, "heads": {"tokens": 500}}
    assert config == preset("paper", **changes)
    (job,) = Train(out=tmp_path, seeds="3", set=texts).jobs()
    assert job.about["task"]["eta_max"] == [9.0, 6.0]
    assert (job.run.sac.gamma, job.run.heads.tokens) == (0.9, 500)


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("task.tau_z=2", "--tau-z"),
        ("task.shield=false", "--shield"),
        ("sac.steps=900", "--steps"),
        ('encoder.encoder="gru"', "--encoder"),
        ("encoder.k_max=3", "--k-max"),
        ('heads.share="relative"', "--share"),
    ],
)
def test_a_field_with_an_option_of_its_own_is_not_set_twice(tmp_path: Path, text: str, option: str) -> None:
    """The option has a value even where it is not given; the text would be lost."""
    with pytest.raises(ValueError, match=f"this field has an option of its own, {option}$"):
        Train(out=tmp_path, set=(text,)).config()
    assert not list(tmp_path.iterdir())


OUT = {"train": ["--out", "runs", "--seeds", "1", "--figures", "figures"], "baselines": ["--figure", "new/figure.png"]}


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--set", "task.tau=5"],
        ["train", "--set", "task.shield_slack=1"],
        ["train", "--robot", "absent.py:Arm"],
        ["train", "--robot", "robot.py:Arm"],
        ["train", "--robot", "huge"],
        ["train", "--friction", "robot.py:Arm"],
        ["train", "--trajectory", "absent.csv"],
        ["train", "--trajectory", "bad.csv"],
        ["baselines", "--robot", "robot.py:Arm"],
        ["baselines", "--trajectory", "bad.csv"],
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing_on_the_disk(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.py").write_text("class Arm:\n    def mass_and_bias(self, q, dq, payload):\n        return q, q")
    (tmp_path / "bad.csv").write_text("time,a,b\n0,0,0\n0,1,1\n")
    with pytest.raises(SystemExit) as ended:
        main([*arguments, *(OUT[arguments[0]])])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1
    assert printed.err.startswith("incrt: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "robot.py"]


# --- what is shown -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["memory", "paper"])
def test_settings_lists_every_field_of_a_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["settings", "--preset", name, "--json"])
    rows = json.loads(capsys.readouterr().out)
    of_parts = [f"{part}.{field.name}" for part, kind in PARTS.items() for field in dataclasses.fields(kind)]
    assert [row["field"] for row in rows] == [*of_parts, "seed"]
    config = preset(name)
    written = config.to_json()
    for row in rows[:-1]:
        part, field = row["field"].split(".")
        if field in written[part]:
            assert row["value"] == written[part][field]
        else:  # one that came later is written only where it is not the default
            assert row["value"] == getattr(config, part).__dataclass_fields__[field].default
        assert row["accepted"]
        assert row["about"].endswith(".")
    assert {row["unit"] for row in rows} >= {"", "s", "N m", "kg"}


def test_settings_prints_a_table_that_is_whole_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    main(["settings"])
    printed = capsys.readouterr().out
    for word in ("task.tau_z", "sac.penalty_rate", "N m s/rad", "a number > 0"):
        assert word in printed


def test_the_help_of_train_shows_the_sentence_of_a_field(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main(["train", "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    kinds = {"tau_z": TaskConfig, "robot": TaskConfig, "steps": SacConfig, "penalty": SacConfig}
    for name, kind in kinds.items():
        field = {each.name: each for each in dataclasses.fields(kind)}[name]
        assert field.metadata["about"] in shown
        assert field.metadata["rule"].accepted in shown


def test_a_robot_of_ones_own_and_what_must_fit_it_are_set_at_once(tmp_path: Path) -> None:
    three = ("eta_max", "coulomb", "breakaway", "viscous", "memory_gain", "shield_friction")
    texts = tuple(f"task.{name}=[3, 2, 1]" for name in three)
    task = Train(out=tmp_path, robot="my_arm.py:Arm", set=texts).config().task
    assert (task.robot, task.dof, task.coulomb) == ("my_arm.py:Arm", 3, (3.0, 2.0, 1.0))
    with pytest.raises(
        ValueError, match="inertia, payload_inertia must have 3 entries, one a joint as eta_max; got iner"
    ):
        Train(out=tmp_path, set=texts).config()


def test_what_has_an_option_of_its_own_is_not_set_twice() -> None:
    with pytest.raises(ValueError, match=r"task\.robot='a': this field has an option of its own, --robot"):
        with_settings(RunConfig(), ["task.robot='a'"], {"task": {"robot": None}})
