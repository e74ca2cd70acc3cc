"""``incrt bench cpu``: its rows, its table, and peers that are not there."""

import json
from dataclasses import replace
from typing import Any

import pytest

from incrt.cli import bench, main
from incrt.peers.table import Peer, Setting
from incrt.peers.timing import Training

FIELDS = {
    "window",
    "runs",
    "peer",
    "peer_steps_per_s",
    "peer_spread",
    "engine_steps_per_s",
    "engine_spread",
    "ratio",
    "ratio_spread",
    "of_one_run",
    "work",
}


def absent(_: Setting) -> Training:
    raise ModuleNotFoundError("No module named 'swift'", name="swift")


IDLE = Training(lambda _: None)
PRESENT = Peer("plain", "less", "pip install plain brings it", lambda _: IDLE)
ABSENT = Peer("swift", "more", "pip install swift brings it", absent)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers and an engine that train nothing, and speeds that are given."""
    engine = {"incrt, one run": 100.0, "incrt, 2 runs at once": 180.0, "incrt, 8 runs at once": 190.0}

    def speeds(trainings: dict[str, Training], *_: Any) -> dict[str, list[float]]:
        return {name: [each * engine.get(name, 10.0) for each in (1.1, 1.0, 0.5)] for name in trainings}

    monkeypatch.setattr(bench, "PEERS", (PRESENT, ABSENT))
    monkeypatch.setattr(bench, "begin_engine", lambda *_: IDLE)
    monkeypatch.setattr(bench, "in_rounds", speeds)


@pytest.mark.usefixtures("made_up")
def test_json_has_a_row_for_each_window_number_of_runs_and_peer(capsys: pytest.CaptureFixture[str]) -> None:
    main(["bench", "cpu", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [(row["window"], row["runs"], row["peer"]) for row in rows] == [
        (window, runs, "plain") for window in (20, 50) for runs in (1, 2, 8)
    ]
    for row in rows:
        assert row.keys() == FIELDS
        assert (row["peer_steps_per_s"], row["peer_spread"]) == (10, [5, 11])
        assert row["ratio"] == pytest.approx(row["engine_steps_per_s"] / 10)
        assert row["ratio_spread"] == pytest.approx([row["ratio"]] * 2)
    one, two = rows[:2]
    assert (one["engine_steps_per_s"], one["engine_spread"], one["of_one_run"]) == (100, [50, pytest.approx(110)], 1)
    assert two["of_one_run"] == pytest.approx(1.8)


@pytest.mark.usefixtures("made_up")
def test_the_table_says_how_runs_at_once_compare_and_what_peers_do(capsys: pytest.CaptureFixture[str]) -> None:
    main(["bench", "cpu"])
    lines = capsys.readouterr().out.splitlines()
    assert "W = 20: 2 runs at once take 1.80 times the steps of one" in lines
    assert "plain: less" in lines
    row = next(line.split() for line in lines if line.split()[:1] == ["plain"])
    assert row == ["plain", "10.0", "5.0", "11.0", "10.00x", "18.00x", "19.00x"]


@pytest.mark.usefixtures("made_up")
def test_a_peer_that_is_not_installed_is_left_out_with_what_brings_it(capsys: pytest.CaptureFixture[str]) -> None:
    main(["bench", "cpu", "--json"])
    said = capsys.readouterr().err
    assert "left out: swift (No module named 'swift'): pip install swift brings it" in said
    assert said.count("left out: swift") == 1


@pytest.mark.usefixtures("made_up")
def test_without_any_peer_the_engine_alone_is_timed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "PEERS", (ABSENT, replace(ABSENT, name="swifter")))
    main(["bench", "cpu"])
    said = capsys.readouterr()
    assert "left out: swift, swifter (No module named 'swift'): pip install swift brings it" in said.err
    assert "W = 20: 2 runs at once take 1.80 times the steps of one" in said.out.splitlines()
    main(["bench", "cpu", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [(row["window"], row["runs"], row["peer"], row["ratio"]) for row in rows] == [
        (window, runs, None, None) for window in (20, 50) for runs in (1, 2, 8)
    ]
    assert all(row.keys() == FIELDS for row in rows)


def test_steps_go_with_the_gpu_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "cpu", "--steps", "5"])
    assert "--steps goes with bench gpu" in capsys.readouterr().err
