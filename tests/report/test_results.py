"""What lies in results/ is what the report makes of the runs kept there, and documents say what lies there."""

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from by_path import load
from made_up_report import REGIMES, report_dataset, without_figures

from incrt.report.archive import read_archive, write_archive
from incrt.report.build import build_report
from incrt.report.drawn import only_drawn

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
DOCUMENT = ROOT / "docs" / "results.md"
rows = load("results/rows.py")


def make_again(folder: Path, out: Path) -> None:
    """The report of what a folder keeps, without page and figures, which take long."""
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        patch.setattr("incrt.report.build.render", lambda *_: "")
        build_report(read_archive(folder), out)


def differing(one: Path, other: Path) -> list[str]:
    """Which tables are not the same in both folders, or not in both."""
    left, right = _tables(one), _tables(other)
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def _tables(folder: Path) -> dict[str, str]:
    found = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in (folder / "cells.csv", *folder.glob("tables/**/*"))
        if path.is_file()
    }
    # The last digits of a mean are not the same on every machine.
    found["cells.csv"] = re.sub(r"\d+\.\d+", lambda digits: f"{float(digits[0]):.9g}", found["cells.csv"])
    return found


def untraced(text: str) -> list[str]:
    """The figures in a document's prose that are in no table below a command in the same section.

    Figures are numbers with a decimal point or a per cent sign, and counts such as 9/10; their sign does not matter. A
    table that no command makes is prose. What stands in code or in the target of a link is not.
    """
    found = []
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for section in re.split(r"^(?=###? )", text, flags=re.MULTILINE):
        tables = "".join(command["table"] for command in rows.COMMAND.finditer(section))
        known = {*re.findall(r"\d+/\d+", tables), *re.findall(r"\d+(?:\.\d+)?", tables)}
        prose = re.sub(r"`(?:[^`\n]|\n(?!\n))*`|\]\([^)]*\)", "", rows.COMMAND.sub("\n", section))
        figures = re.findall(r"\d+/\d+|\d+\.\d+|\d+(?=\s?%)", prose)
        found += [f"{figure} in {section.splitlines()[0]!r}" for figure in figures if figure not in known]
    return found


def other_verdicts(text: str) -> list[str]:
    """The sections in which the verdicts in bold are not those of the tables."""
    found = []
    for section in re.split(r"^(?=###? )", text, flags=re.MULTILINE):
        judged = set()
        for command in rows.COMMAND.finditer(section):
            heading, _, *lines = [line.strip("| ").split(" | ") for line in command["table"].splitlines()]
            if "verdict" in heading:
                judged |= {line[heading.index("verdict")] for line in lines}
        said = re.findall(r"\*\*(holds|does not hold|cannot tell)\*\*", section, re.IGNORECASE)
        if judged and judged != {each.lower() for each in said}:
            found.append(f"{section.splitlines()[0]!r} has {', '.join(sorted(judged))}")
    return found


# --- what is in the repository -------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [RESULTS, RESULTS / "again"], ids=lambda path: path.name)
def test_every_table_is_what_the_report_makes_of_the_runs(folder: Path, tmp_path: Path) -> None:
    make_again(folder, tmp_path)
    found = differing(folder, tmp_path)
    assert not found, f"not what incrt report {folder.relative_to(ROOT)} makes of it: " + ", ".join(found)


@pytest.mark.parametrize("path", [DOCUMENT, ROOT / "README.md"], ids=lambda path: path.name)
def test_documents_show_what_their_commands_print(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert rows.refreshed(text) == text, f"python results/rows.py --refresh {path.relative_to(ROOT)} puts it right"


@pytest.mark.parametrize("path", [DOCUMENT, ROOT / "README.md"], ids=lambda path: path.name)
def test_every_figure_in_prose_is_in_a_table_beside_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert rows.COMMAND.search(text)
    found = untraced(text)
    assert not found, "in no table of the section, below a command that makes it: " + "; ".join(found)


def test_verdicts_in_bold_are_those_of_the_tables() -> None:
    assert other_verdicts(DOCUMENT.read_text(encoding="utf-8")) == []


def test_commands_that_were_stopped_are_among_those_that_are_kept() -> None:
    lines = csv.DictReader((RESULTS / "stopped.csv").read_text().splitlines())
    stopped = {(row["study"], row["preset"], row["part"], row["begun"], float(row["training [s]"])) for row in lines}
    commands = read_archive(RESULTS).commands
    assert stopped <= set(commands.select("study", "preset", "part", "begun", "train_s").iter_rows())


def test_runs_are_kept_without_their_weights() -> None:
    weights = [path.relative_to(RESULTS) for path in RESULTS.rglob("*.safetensors")]
    assert [path for path in weights if path.parts[0] != "policies"] == []


# --- the checks can fail -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "results"
    write_archive(only_drawn(report_dataset(studies={"main": (("runtime",), REGIMES)}, seeds=3)), folder)
    make_again(folder, folder)
    return folder


@pytest.fixture
def copy(report: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(report, tmp_path / "copy"))


def test_a_changed_digit_of_a_run_is_noticed(copy: Path, tmp_path: Path) -> None:
    make_again(copy, tmp_path / "again")
    assert differing(copy, tmp_path / "again") == []
    before = (copy / "runs.csv").read_text()
    (copy / "runs.csv").write_text(before.replace(",-8", ",-7", 1))
    make_again(copy, tmp_path / "again")
    assert {"cells.csv", "tables/memory/study-main.csv"} <= set(differing(copy, tmp_path / "again"))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tables/memory/claims.md", lambda path: path.write_text(re.sub(r"\d", "x", path.read_text(), count=1))),
        ("tables/paper/table-1.tex", lambda path: path.unlink()),
        ("tables/paper/table-4.csv", lambda path: path.write_text("")),
        ("tables/other/claims.csv", lambda path: (path.parent.mkdir(), path.write_text(""))),
        ("cells.csv", lambda path: path.write_text(path.read_text().replace(".8", ".7", 1))),
    ],
)
def test_a_table_that_the_report_does_not_make_is_noticed(
    report: Path, copy: Path, name: str, change: Callable[[Path], object]
) -> None:
    change(copy / name)
    assert differing(report, copy) == [name]


def test_a_verdict_that_is_not_the_tables_is_noticed() -> None:
    table = "`python results/rows.py tables/a.csv n verdict`\n\n| n | verdict |\n| --- | --- |\n| 1 | holds |\n"
    assert other_verdicts(f"### A\n\n{table}\n**Holds** well.\n") == []
    assert other_verdicts(f"### A\n\n{table}\n**Does not hold**.\n") == ["'### A' has holds"]
    assert other_verdicts(f"### A\n\n{table}\n**Holds**, or **cannot tell**.\n") == ["'### A' has holds"]


def test_a_whole_table_looks_as_in_the_report(report: Path) -> None:
    shutil.copy(RESULTS / "rows.py", report)
    ours = load(report / "rows.py")
    for path in report.glob("tables/*/*.md"):
        shown = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
        columns = shown[0].strip("| ").split(" | ")
        made = ours.table([path.relative_to(report).with_suffix(".csv").as_posix(), *columns]).splitlines()
        assert [made[0], *made[2:]] == [shown[0], *shown[2:]]


PROSE = """\
# Title

Of 2 presets.

## First

The best is at **-84.23 %** of 300/300 runs (0.5 of it in 99 %), as [Table 1](tables/1.5.md) says; `--tau-z 2.5`.

`python results/rows.py 'tables/*/claims.csv' 'claim~1.25' ours n`

| ours | n |
| --- | --- |
| 300/300 [99, 100] %, at worst \N{MINUS SIGN}84.23 % | 0.5 |

```
## 7.5 %
```

### Second

It takes 50 000 steps.
"""


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("", "", []),
        ("-84.23", "84.23", []),
        ("**-84.23", "**\N{MINUS SIGN}84.32", ["84.32 in '## First'"]),
        ("-84.23", "-84.2", ["84.2 in '## First'"]),
        ("\N{MINUS SIGN}84.23", "84.24", ["84.23 in '## First'"]),
        ("of 300/300", "of 30/300", ["30/300 in '## First'"]),
        ("99 %)", "98%)", ["98 in '## First'"]),
        ("2 presets", "2.0 presets", ["2.0 in '# Title'"]),
        ("50 000 steps", "0.5 of 300/300", ["0.5 in '### Second'", "300/300 in '### Second'"]),
        ("It takes", "| by hand | 1.75 |", ["1.75 in '### Second'"]),
        ("`--tau-z 2.5`", "1.25, 1.5, 2.5", ["1.25 in '## First'", "1.5 in '## First'", "2.5 in '## First'"]),
    ],
)
def test_a_figure_that_is_in_no_table_is_named(before: str, after: str, found: list[str]) -> None:
    assert before in PROSE
    assert untraced(PROSE.replace(before, after, 1)) == found
