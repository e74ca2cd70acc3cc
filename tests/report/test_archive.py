"""A report made again from its own folder is the same; what it keeps is read back, and what is damaged is refused."""

import csv
import io
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from made_up import a_run
from made_up_report import MIDDLE, STUDIES, report_dataset, without_figures

from incrt.cli import main
from incrt.report.archive import is_archive, read_archive, write_archive
from incrt.report.build import build_report
from incrt.report.claims import judge
from incrt.report.data import Dataset, History
from incrt.report.drawn import only_drawn
from incrt.report.figures.all_charts import make_charts
from incrt.report.figures.chart import Chart
from incrt.report.schema import RUNS, to_frame
from incrt.report.selection import SOUND, Runs
from incrt.report.tables import claims_table
from incrt.report.tables.table import to_csv, to_latex
from incrt.storage.atomic import write_whole
from incrt.storage.records import Episodes

FILES = ("runs.csv", "references.csv", "commands.csv", "histories.npz", "episodes.npz", "record.json")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """Two studies that share runs, one with conditions, and runs whose figures or words are hard to write."""
    found = report_dataset(("memory",), {name: STUDIES[name] for name in ("main", "static", "robustness")}, seeds=4)
    odd = [
        a_run("main", "runtime", 2.0, None, preset="memory", seed=60, failure='said "no",\nthen, nothing'),
        a_run("main", "runtime", 5.0, -80.0, preset="memory", seed=61, largest_grow_jump=math.inf, inside=None),
    ]
    return replace(found, runs=pl.concat([found.runs, to_frame(odd, RUNS)]), title="Made up & more")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of one regime of one study; to draw more takes long."""
    folder = tmp_path_factory.mktemp("made") / "report"
    build_report(report_dataset(("memory",), {"main": (("runtime",), MIDDLE)}, seeds=3), folder)
    return folder


@pytest.fixture(scope="module")
def kept(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "kept"
    write_archive(only_drawn(dataset), folder)
    return folder


@pytest.fixture
def archive(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "kept"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def same(one: History | Episodes, other: History | Episodes) -> bool:
    parts = zip(vars(one).values(), vars(other).values(), strict=True)
    return all(
        np.array_equal(left, right, equal_nan=True) if isinstance(left, np.ndarray) else left == right
        for left, right in parts
    )


def test_a_report_made_from_its_own_folder_is_the_same(report: Path, tmp_path: Path) -> None:
    main(["report", str(report), "--out", str(tmp_path), "--json"])
    before, after = contents(report), contents(tmp_path)
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []
    assert {Path(name).suffix for name in before} == {".html", ".csv", ".md", ".tex", ".json", ".npz", ".png", ".svg"}


def test_a_report_that_was_cut_off_can_be_made_again(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("incrt.report.build.render", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_report(dataset, tmp_path)
    assert len(read_archive(tmp_path).runs) == len(dataset.runs)


def test_a_report_is_made_again_where_it_is_and_keeps_its_title(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_figures(monkeypatch)
    main(["report", str(archive), "--json"])
    assert "<title>Made up &amp; more</title>" in (archive / "report.html").read_text()
    main(["report", str(archive), "--json", "--title", "Another"])
    main(["report", str(archive), "--json"])
    assert "<title>Another</title>" in (archive / "report.html").read_text()
    assert not (archive / "report").exists()


def test_what_an_earlier_report_had_more_of_is_removed(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_figures(monkeypatch)
    stale = [tmp_path / "tables" / "paper" / "study-old.csv", tmp_path / "figures" / "memory" / "old.svg"]
    own = [tmp_path / name for name in ("tables/memory/notes.txt", "figures/mine/photo.png", "study-old.csv")]
    for path in (*stale, *own):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    build_report(dataset, tmp_path)
    tables = set((tmp_path / "tables").glob("*/*.csv"))
    build_report(dataset, tmp_path)
    assert set((tmp_path / "tables").glob("*/*.csv")) == tables
    assert len(tables) > 3
    assert not any(path.exists() for path in stale)
    assert all(path.exists() for path in own)


def test_what_is_kept_is_read_back(dataset: Dataset, archive: Path) -> None:
    kept, found = only_drawn(dataset), read_archive(archive)
    for name in ("studies", "made_by", "title"):
        assert getattr(found, name) == getattr(dataset, name)
    for name in ("runs", "controllers", "commands"):
        assert getattr(found, name).equals(getattr(dataset, name))
    for one, other in ((found, kept), (only_drawn(kept), kept)):
        assert list(one.histories) == list(other.histories)
        assert list(one.episodes) == list(other.episodes)
        assert all(same(one.histories[name], other.histories[name]) for name in other.histories)
        assert all(same(one.episodes[name], other.episodes[name]) for name in other.episodes)
    rounded = next(iter(kept.histories.values()))
    exact = dataset.histories[next(iter(kept.histories))]
    assert np.allclose(rounded.returns, exact.returns, rtol=1e-6, equal_nan=True)
    assert rounded.steps.tolist() == exact.steps.tolist()


@pytest.mark.parametrize("before", ["runtime", None])
def test_a_record_of_the_version_before_is_read(archive: Path, before: str | None) -> None:
    path = archive / "record.json"
    path.write_bytes(changed(lambda record: record["studies"][1].update(compare=before))(path.read_bytes()))
    _, static, _ = read_archive(archive).studies
    assert static.compare == (dict.fromkeys(STUDIES["static"][0][1:], before) if before else {})


def test_nothing_at_all_is_read_back(dataset: Dataset, tmp_path: Path) -> None:
    write_archive(replace(dataset, histories={}, episodes={}, commands=dataset.commands.clear()), tmp_path)
    found = read_archive(tmp_path)
    assert (found.histories, found.episodes, len(found.commands)) == ({}, {}, 0)
    assert found.commands.schema == dataset.commands.schema


def test_only_what_is_drawn_is_kept(dataset: Dataset) -> None:
    kept = only_drawn(dataset)
    runs = {row["folder"]: row for row in dataset.runs.iter_rows(named=True)}
    lost = set(dataset.runs.filter(~SOUND)["folder"])
    assert dataset.histories.keys() - kept.histories.keys() == lost & dataset.histories.keys()
    ranked = [folder for folder, history in kept.histories.items() if len(history.ranks)]
    assert {(runs[folder]["variant"], len(kept.histories[folder].event_steps)) for folder in ranked} == {("runtime", 7)}
    assert len(ranked) == 12
    assert sorted(runs[name]["tau_z"] for name, each in kept.histories.items() if each.shares.size) == [1.0, 2.0, 5.0]


def test_charts_draw_nothing_that_is_left_out() -> None:
    dataset = report_dataset(seeds=4)
    some = next(iter(dataset.episodes.values()))
    # More runs have episodes than are shown, but not always the one whose heads are.
    known = dict.fromkeys(dataset.runs.filter(SOUND, pl.col("seed") % 2 == 1)["folder"], some)
    dataset = replace(dataset, episodes=known)
    kept = only_drawn(dataset)
    assert len(kept.episodes) == 6
    for preset in ("paper", "memory"):
        charts, again = make_charts(Runs(dataset, preset)), make_charts(Runs(kept, preset))
        assert [chart.caption for chart in again] == [chart.caption for chart in charts]
        for one, other in zip(numbers(again), numbers(charts), strict=True):
            assert np.allclose(one, other, rtol=1e-5, atol=1e-5, equal_nan=True)


def numbers(charts: list[Chart]) -> list[Any]:
    """All places of all marks."""
    panels = [panel for chart in charts for panel in chart.panels]
    marks = [array for panel in panels for each in panel.series for array in (each.x, each.y, each.low, each.high)]
    heat = [array for panel in panels if panel.heatmap for array in (panel.heatmap.x, panel.heatmap.y, panel.heatmap.z)]
    return [array for array in (*marks, *heat) if array is not None]


def test_a_run_takes_little_room(tmp_path: Path) -> None:
    dataset = only_drawn(report_dataset(seeds=5))
    write_archive(dataset, tmp_path)
    assert (tmp_path / "histories.npz").stat().st_size < 600 * len(dataset.histories)
    assert (tmp_path / "runs.csv").stat().st_size < 300 * len(dataset.runs)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing_is_named(archive: Path, name: str) -> None:
    (archive / name).unlink()
    assert is_archive(archive)
    with pytest.raises(ValueError, match=f"{name} is missing"):
        read_archive(archive)


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """A record in which something is not as it should be."""

    def damage(content: bytes) -> bytes:
        record = json.loads(content)
        change(record)
        return json.dumps(record).encode()

    return damage


def without(name: str) -> Callable[[bytes], bytes]:
    """An archive of arrays without one of them."""

    def damage(content: bytes) -> bytes:
        with np.load(io.BytesIO(content)) as arrays:
            kept: dict[str, Any] = {key: arrays[key] for key in arrays if key != name}
        file = io.BytesIO()
        np.savez_compressed(file, **kept)
        return file.getvalue()

    return damage


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("runs.csv", lambda content: content[:-1], "ends in the middle of a line"),
        ("runs.csv", lambda content: content[: content[:-1].rindex(b"\n") + 1], r"has \d+ rows, but record.json says"),
        (
            "runs.csv",
            lambda content: content.replace(b",50000,", b",many,", 1),
            "row 1: steps must be a whole number, got 'many'",
        ),
        ("runs.csv", lambda content: content.replace(b",True,", b",yes,", 1), "must be True or False, got 'yes'"),
        ("runs.csv", lambda content: content.replace(b"\nmain,", b"\nmian,", 1), "study 'mian', preset .*, is not in"),
        ("runs.csv", lambda content: content.replace(b",runtime,", b",rutnime,", 1), "rutnime, tau_z = 1 s, is not in"),
        ("runs.csv", lambda content: content.replace(b",43,", b",42,", 1), "more than one row of main .* 42"),
        ("references.csv", lambda content: content.replace(b"\nmain,", b"\nmian,", 1), "study 'mian', preset"),
        ("references.csv", lambda content: content[content.index(b"\n") + 1 :], "first line must be study,preset"),
        ("references.csv", lambda content: content.replace(b",baseline", b"", 1), "row 1 must have 12 cells, got 11"),
        ("commands.csv", lambda _: b"\xff", "can't decode"),
        ("record.json", lambda content: content[:-10], "Expecting"),
        ("record.json", lambda _: b"[]", "list indices"),
        ("record.json", changed(lambda record: record["studies"][0].pop("about")), "missing .* 'about'"),
        ("record.json", changed(lambda record: record["rows"].pop("runs.csv")), "KeyError.'runs.csv'"),
        ("histories.npz", lambda content: content[: len(content) // 2], "not a zip file"),
        ("histories.npz", lambda _: b"nonsense", "not a zip file"),
        ("histories.npz", lambda content: content[:3000] + bytes(100) + content[3100:], "in it is not|error"),
        ("histories.npz", without("returns"), "returns"),
        ("episodes.npz", without("q_shape"), "q_shape"),
        ("episodes.npz", lambda _: b"", "not a zip file"),
    ],
)
def test_what_is_damaged_is_refused_by_name(
    archive: Path, name: str, damage: Callable[[bytes], bytes], said: str
) -> None:
    (archive / name).write_bytes(damage((archive / name).read_bytes()))
    with pytest.raises(ValueError, match=rf"{name} is damaged: .*{said}"):
        read_archive(archive)


def test_commands_of_a_version_that_knew_no_part_are_read(archive: Path) -> None:
    path, found = archive / "commands.csv", read_archive(archive).commands
    lines = path.read_text().splitlines()
    path.write_text("".join(line.removesuffix(",part").removesuffix(",") + "\n" for line in lines))
    assert "part" not in path.read_text()
    assert read_archive(archive).commands.equals(found)
    path.write_text(path.read_text().replace(",evaluate_s", "", 1))
    with pytest.raises(ValueError, match=r"first line must be study,preset,.*,evaluate_s,part"):
        read_archive(archive)


def test_a_folder_that_is_neither_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(tmp_path)])
    assert ended.value.code == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert "holds no study and no report; it must be what incrt study run had as --out, or a report's folder" in said
    (tmp_path / "seed-42").mkdir()
    (tmp_path / "seed-42" / "config.json").touch()
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path)])
    assert "incrt evaluate is for runs of incrt train" in capsys.readouterr().err.replace("\n", " ")


def test_a_report_has_no_runs_whose_status_could_be_shown(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["study", "status", str(archive)])
    assert "is the folder of a report" in capsys.readouterr().err.replace("\n", " ")


def test_studies_count_more_than_a_report_in_the_same_folder(archive: Path) -> None:
    assert is_archive(archive)
    (archive / "studies").mkdir()
    assert not is_archive(archive)


def test_the_table_of_claims_says_what_is_judged(dataset: Dataset, report: Path) -> None:
    verdicts = judge(Runs(dataset, "memory"))
    table = claims_table(verdicts, "memory")
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    for row, verdict in zip(rows, verdicts, strict=True):
        figures = [text.replace("\N{MINUS SIGN}", "-") for text in (verdict.ours, verdict.claim.paper, verdict.why)]
        assert [row["ours"], row["paper"], row["why"]] == figures
        assert (row["verdict"], row["n"]) == (verdict.judgement, str(verdict.n))
        assert (row["claim"], row["where in the paper"]) == (verdict.claim.sentence, verdict.claim.where)
    assert to_latex(table).isascii()
    assert sorted(path.name for path in (report / "tables" / "memory").glob("claims.*")) == [
        *("claims.csv", "claims.md", "claims.tex")
    ]
    assert table.title not in (report / "report.html").read_text()


def test_cells_have_the_means_of_what_else_is_measured(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_figures(monkeypatch)
    build_report(dataset, tmp_path)
    cells = list(csv.DictReader(io.StringIO((tmp_path / "cells.csv").read_text())))
    place = {"study": "static", "variant": "static K=7", "tau_z": "5.0", "condition": ""}
    (cell,) = [each for each in cells if place.items() <= each.items()]
    runs = dataset.runs.filter(study="static", variant="static K=7", tau_z=5.0, condition="")
    sound = runs.filter(SOUND)
    assert (len(runs), len(sound), cell["diverged"]) == (4, 3, "1")
    assert float(cell["success_rate"]) == runs["success"].sum() / 4
    assert float(cell["headroom_closed"]) == pytest.approx(sound["headroom_closed"].mean())
    assert (float(cell["max_error"]), float(cell["torque_tv"])) == (0.3, 1000.0)


def test_an_interrupt_leaves_no_mixture_of_old_and_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (report_dataset(("memory",), {"main": (("runtime",), MIDDLE)}, seeds=seeds) for seeds in (2, 3))
    write_archive(only_drawn(old), tmp_path / "results")
    renamed, replace_file = [], Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        renamed.append(target)
        if len(renamed) == 2:
            raise KeyboardInterrupt
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_archive(only_drawn(new), tmp_path / "results")
    assert read_archive(tmp_path / "results").runs.equals(new.runs)
    assert not list(tmp_path.rglob("*.aside"))


def test_another_report_is_not_written_over_unless_all_of_it_is_in_the_new_one(
    archive: Path, report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_figures(monkeypatch)
    before = contents(archive)
    with pytest.raises(SystemExit):
        main(["report", str(report), "--out", str(archive)])
    said = " ".join(capsys.readouterr().err.split())
    assert f"--out {archive} holds a report with" in said
    assert "are not in this one; name" in said
    assert contents(archive) == before
    main(["report", str(archive), "--out", str(archive), "--json"])  # its own
    again = archive.parent / "again"
    for _ in range(2):  # the same once more
        main(["report", str(archive), "--out", str(again), "--json"])


def test_what_was_removed_while_it_was_written_is_not_taken_for_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed(_: int) -> None:
        for aside in tmp_path.glob("*.aside"):
            aside.unlink()

    monkeypatch.setattr("incrt.storage.atomic.os.fsync", removed)
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "eval.json", b"{}")


def test_a_disk_that_is_full_leaves_the_old_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (report_dataset(("memory",), {"main": (("runtime",), MIDDLE)}, seeds=seeds) for seeds in (2, 3))
    write_archive(only_drawn(old), tmp_path / "results")
    calls = iter((None, None, OSError(28, "No space left on device")))

    def full(_: int) -> None:
        if error := next(calls):
            raise error

    monkeypatch.setattr("incrt.storage.atomic.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_archive(only_drawn(new), tmp_path / "results")
    assert read_archive(tmp_path / "results").runs.equals(old.runs)
    assert not list(tmp_path.rglob("*.aside"))
