"""The command that takes tables for documents from results/, on a small folder of the same kind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from by_path import load
from scipy import stats

CLAIMS = {
    "memory": 'claim,n,ours\nIt works.,300,"300/300 [99, 100] %, at worst -84.23 %"\nIt is small.,40,-1.5\n',
    "paper": "claim,n,ours\nIt works.,30,\nIt is small.,0,no runs\n",
}
RUNS = 'variant,tau_z,seeds,failure,preset\ngrow|prune,1.0,42-51,"first\nsecond",memory\nK=8,2.0,seed-42,,paper\n'
COMMAND = "`python results/rows.py 'tables/*/claims.csv' 'claim~works' ours n`"
TABLE = """\
| preset | ours | n |
| --- | --- | --- |
| memory | 300/300 [99, 100] %, at worst \N{MINUS SIGN}84.23 % | 300 |
| paper | \N{EN DASH} | 30 |"""


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    """The script, beside tables of two presets."""
    folder = tmp_path / "results"
    for preset, text in CLAIMS.items():
        (folder / "tables" / preset).mkdir(parents=True)
        (folder / "tables" / preset / "claims.csv").write_text(text)
    (folder / "runs.csv").write_text(RUNS)
    (folder / "commands.csv").write_text("study,wall_s\n")
    shutil.copy(Path(__file__).parents[2] / "results" / "rows.py", folder)
    return load(folder / "rows.py")


def test_rows_of_files_that_match_a_pattern_have_their_preset(rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rows.main(["tables/*/claims.csv", "claim~works", "ours", "n"])
    assert capsys.readouterr().out == TABLE + "\n"
    assert rows.table(["tables/*/claims.csv", "ours", "preset~^memory$", "n", "claim~w.*s", "preset"]) == "\n".join(
        TABLE.splitlines()[:3]
    )


def test_rows_of_one_file_have_what_was_asked_for_in_that_order(rows: Any) -> None:
    assert rows.table(["tables/memory/claims.csv", "n", "claim"]).splitlines() == [
        *("| n | claim |", "| --- | --- |", "| 300 | It works. |", "| 40 | It is small. |")
    ]


def test_cells_stay_on_their_line_and_hyphens_are_no_minus_signs(rows: Any) -> None:
    assert rows.table(["runs.csv", "variant", "tau_z", "seeds", "failure"]).splitlines()[2:] == [
        r"| grow\|prune | 1.0 | 42-51 | first second |",
        "| K=8 | 2.0 | seed-42 | \N{EN DASH} |",
    ]


def test_figures_that_a_file_has_in_full_are_rounded(rows: Any) -> None:
    Path(rows.__file__).with_name("cells.csv").write_text(
        "a,b,c,d\n-91.92235441884944,0.0032517745,1.23456789e-05,1.2345\n"
    )
    row = rows.table(["cells.csv", "a", "b", "c", "d"]).splitlines()[2]
    assert row == "| \N{MINUS SIGN}91.92 | 0.00325 | 1.23e-05 | 1.2345 |"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["claims.csv", "n"], "no file .* matches 'claims.csv'; there are commands.csv, runs.csv, tables/mem"),
        (["tables/*/claims.csv", "m"], "no column 'm'; it has preset, claim, n, ours"),
        (["*s.csv", "n"], "no column 'n'; it has preset"),
        (["runs.csv", "claim~works", "variant"], "no column 'claim'; it has variant, tau_z, seeds, failure, preset"),
        (["runs.csv", "variant~K"], "no column of runs.csv is named; it has variant"),
        (["runs.csv", "variant~(", "variant"], r"'variant~\(' must be COLUMN~REGULAR EXPRESSION, but missing \)"),
        (["runs.csv", "tau_z~^1$", "variant"], "no row of runs.csv meets all .*; in its rows tau_z is '1.0', '2.0'"),
        (["commands.csv", "study"], "commands.csv has no rows"),
        (
            ["tables/paper/claims.csv", "--between", "a", "b"],
            "--between is for tables of runs, such as runs.csv; .* none",
        ),
        (["runs.csv", "variant~K", "preset~mem", "n"], "no column 'n'"),
        (
            ["runs.csv", "variant~K", "preset~mem", "variant"],
            r"no row .*; with preset~mem variant is 'grow\|prune'; with variant~K preset is 'paper'$",
        ),
        (
            ["tables/*/claims.csv", "n", "--across"],
            "several rows of preset memory have the same columns; name what tells them apart .* of claim, ours$",
        ),
        (["tables/paper/claims.csv", "n", "--between", "a", "b"], "--between must be the last word but two, behind"),
        (["runs.csv", "--across", "--between", "a", "b"], "--between and --across do not go together"),
    ],
)
def test_what_is_wrong_and_what_is_accepted_is_said(
    rows: Any, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        rows.table(arguments)
    with pytest.raises(SystemExit) as ended:
        rows.main(arguments)
    assert ended.value.code == 2
    assert f"error: {refused.value}\n" in capsys.readouterr().err


def test_variants_are_compared_as_in_the_report_each_run_once(rows: Any) -> None:
    samples = {"grow": (-50.0, -52.0, -49.0, -51.5), "K=8": (-53.0, -55.0, -50.5, -54.5)}
    lines = [
        f"{study},paper,{variant},5.0,{'lost' if delta == -50.5 else ''},{delta},runs/{variant}/seed-{i},"
        for study in ("main", "hundred")
        for variant, deltas in samples.items()
        for i, delta in enumerate(deltas)
    ]
    lines += ["main,memory,grow,5.0,,-70,runs/memory/seed-42,", "main,memory,none (W 1),5.0,,-60,runs/none/seed-42,"]
    lines.append("tests,paper,grow,5.0,,-10.0,runs/grow/seed-0,payload")
    header = "study,preset,variant,tau_z,failure,delta_pct,folder,condition"
    (rows.FOLDER / "runs.csv").write_text("\n".join([header, *lines, ""]))
    heading, _, row = rows.table(["runs.csv", "study~main|hundred", "--between", "gr.w", "K=8"]).splitlines()
    interval = stats.ttest_ind(samples["grow"], (-53.0, -55.0, -54.5), equal_var=False).confidence_interval()
    assert "| n: gr.w |" in heading
    assert row.startswith("| paper | 5 | 4 | \N{MINUS SIGN}50.62 ")
    assert f"| 3.54 [{interval.low:.2f}, {interval.high:.2f}] |" in row
    assert rows.table(["runs.csv", "condition~^$", "--between", "grow", "none (W 1)"]).count("| memory | 5 |") == 1
    for conditions, other, said in (
        (["study~main"], "none", r"no run .* is of none; there are 'grow', 'K=8', 'none \(W 1\)'"),
        (["study~main"], "none(", r"'none\(' must be a variant or a regular expression for some, but missing \)"),
        (["preset~paper"], "K=8", "tested under several conditions, such as '', 'payload'; .* must choose one"),
        (["folder~grow|none", "study~main"], "none.*", "no preset and regime has runs of grow and of none"),
        (["delta_pct~-5[20]", "study~main"], "K=8", r"all runs of K=8 diverged, of preset paper and tau_z 5\.0"),
    ):
        with pytest.raises(ValueError, match=said):
            rows.table(["runs.csv", *conditions, "--between", "grow", other])


def test_a_file_may_be_named_as_the_shell_completes_it(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(rows.FOLDER.parent)
    assert rows.table(["results/runs.csv", "variant"]) == rows.table(["runs.csv", "variant"])
    assert rows.table(["results/tables/*/claims.csv", "n"]) == rows.table(["tables/*/claims.csv", "n"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (RUNS.encode()[:-8], "runs.csv is damaged: row 2 must have 5 cells, got 3"),
        (b"variant\nK=8,9\n", "runs.csv is damaged"),
        (b"variant\n\xff\n", "runs.csv is no table: 'utf-8' codec can't decode"),
    ],
)
def test_a_damaged_table_is_refused_by_name(rows: Any, content: bytes, said: str) -> None:
    (rows.FOLDER / "runs.csv").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        rows.table(["runs.csv", "variant"])


def test_it_is_a_command_whose_reader_may_stop_reading(rows: Any) -> None:
    command = [sys.executable, rows.FOLDER / "rows.py", "tables/*/claims.csv", "claim~works", "ours", "n"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n\n| old |\n| --- |\n", "\n| old |"])
@pytest.mark.parametrize("rest", ["", "Text.\n", "| no row of it |\n", COMMAND + "\n"])
def test_a_table_is_put_below_its_command(rows: Any, end: str, rest: str) -> None:
    text = f"# Title\n\nText.\n\n{COMMAND}{end}" + (f"\n\n{rest}" if rest else "")
    found = rows.refreshed(text)
    begin = f"# Title\n\nText.\n\n{COMMAND}\n\n{TABLE}\n"
    assert found.startswith(begin)
    assert rows.refreshed(found) == found
    if rest == "Text.\n":
        assert found == f"{begin}\n{rest}"


def test_a_table_that_was_changed_is_put_right_and_all_else_is_left_alone(rows: Any) -> None:
    inline = "As `python results/rows.py runs.csv n` says.\n\n| its own | 1.5 |\n"
    about = "`python results/rows.py --refresh README.md`\n\n| another | 2.5 |\n"
    text = f"{inline}\n{COMMAND}\n\n{TABLE}\n\n{about}"
    assert rows.refreshed(text) == text
    last_row = TABLE.splitlines()[-1] + "\n"
    for before, after in (("84.23", "84.32"), ("| 30 |", "| 31 |"), ("\N{MINUS SIGN}", "-"), (last_row, "")):
        changed = text.replace(before, after, 1)
        assert changed != text
        assert rows.refreshed(changed) == text


@pytest.mark.parametrize(
    ("arguments", "said"), [("'runs.csv", "No closing quotation"), ("runs.csv n", "has no column 'n'")]
)
def test_a_command_that_is_wrong_is_named(rows: Any, arguments: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^`python results/rows.py {arguments}`: .*{said}"):
        rows.refreshed(f"`python results/rows.py {arguments}`\n")


def test_documents_are_refreshed_from_anywhere(rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.md").write_text(COMMAND + "\n")
    (tmp_path / "two.md").write_text("Nothing.\n")
    rows.main(["--refresh", "one.md", "two.md"])
    assert (tmp_path / "one.md").read_text() == f"{COMMAND}\n\n{TABLE}\n"
    assert (tmp_path / "two.md").read_text() == "Nothing.\n"
    with pytest.raises(SystemExit) as ended:
        rows.main(["--refresh", "three.md"])
    assert ended.value.code == 2


def test_presets_stand_side_by_side(rows: Any) -> None:
    assert rows.table(["tables/*/claims.csv", "claim", "n", "--across"]).splitlines() == [
        "| claim | memory | paper |",
        "| --- | --- | --- |",
        "| It works. | 300 | 30 |",
        "| It is small. | 40 | 0 |",
    ]
    with pytest.raises(ValueError, match="--across is for files of several presets"):
        rows.table(["tables/paper/claims.csv", "claim", "n", "--across"])
