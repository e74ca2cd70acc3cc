"""Rows of the tables in this folder as Markdown, for documents that show where their numbers come from.

    python results/rows.py FILE [COLUMN~EXPRESSION ...] COLUMN ...

prints the named columns of all rows in which each regular expression is found in its column. FILE is a CSV file of this
folder, such as runs.csv, or a pattern, such as 'tables/*/claims.csv'; then the first column is the preset, which the
folder of each file is named after.

    python results/rows.py runs.csv [COLUMN~EXPRESSION ...] --between VARIANT OTHER

compares, of these rows of runs, those whose variant is the first with those whose variant is the other, by preset and
regime, wherever there are both, each run once, with the statistics of the report. Either is a name or a regular
expression for whole names.

    python results/rows.py 'tables/*/claims.csv' [COLUMN~EXPRESSION ...] COLUMN ... --across

puts what the presets have in the last column side by side, a column a preset.

    python results/rows.py --refresh DOCUMENT ...

makes each table anew that stands in a Markdown document below such a command. The command is a line of its own, between
backticks; where it has no table yet it gets one.
"""

import argparse
import csv
import fnmatch
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

_BETWEEN, _ACROSS = "--between", "--across"
_OF_RUNS = ("preset", "tau_z", "variant", "folder", "condition", "failure", "delta_pct")
_ALL_DIGITS = re.compile(r"-?\d+\.\d{7,}|-?\d+(\.\d+)?e-?\d+")
FOLDER = Path(__file__).resolve().parent
COMMAND = re.compile(
    r"^(?P<command>`python results/rows\.py (?!--)(?P<arguments>[^`\n]+)`)$\n*(?P<table>(?:^\|.*\n?)*)\n*", re.MULTILINE
)


def table(arguments: Sequence[str]) -> str:
    """What a command prints. Its arguments: a file or a pattern, then conditions and columns."""
    name, *rest = [word for word in arguments if word != _ACROSS]
    words, compared = _split(rest)
    conditions = [_condition(word) for word in words if "~" in word]
    shown = [word for word in words if "~" not in word]
    rows, first = _read(name)
    columns = [column for column in rows[0] if all(column in row for row in rows)]
    if compared and _ACROSS in arguments:
        raise ValueError(f"{_BETWEEN} and {_ACROSS} do not go together")
    if compared and not {*_OF_RUNS} <= {*columns}:
        raise ValueError(f"{_BETWEEN} is for tables of runs, such as runs.csv; {name} is none")
    for column in [*shown, *(column for column, _ in conditions)]:
        if column not in columns:
            raise ValueError(f"{name} has no column {column!r}; it has {', '.join(columns)}")
    if not shown and not compared:
        raise ValueError(f"no column of {name} is named; it has {', '.join(columns)}")
    found = [row for row in rows if all(expression.search(row[column]) for column, expression in conditions)]
    if not found:
        there = "; ".join(_left_by_others(rows, conditions, i) for i in range(len(conditions)))
        raise ValueError(f"no row of {name} meets all conditions; {there}")
    if compared:
        found = _compared(found, *compared)
        first, shown = [], list(found[0])
    elif _ACROSS in arguments:
        found = _across(found, shown)
        first, shown = [], list(found[0])
    shown = list(dict.fromkeys([*first, *shown]))
    lines = [shown, ["---"] * len(shown), *([_cell(row[column]) for column in shown] for row in found)]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def refreshed(text: str) -> str:
    """A document in which below each command stands what it prints."""

    def renew(found: re.Match[str]) -> str:
        try:
            made = table(shlex.split(found["arguments"]))
        except ValueError as error:
            raise ValueError(f"{found['command']}: {error}") from None
        return f"{found['command']}\n\n{made}\n" + ("\n" if found.end() < len(text) else "")

    return COMMAND.sub(renew, text)


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before ``--between``, and the two variants behind it."""
    if _BETWEEN not in words:
        return words, ()
    place = list(words).index(_BETWEEN)
    if len(compared := words[place + 1 :]) != 2 or any("~" not in word for word in words[:place]):
        raise ValueError(f"{_BETWEEN} must be the last word but two, behind conditions and before two variants")
    return words[:place], compared


def _compared(rows: Sequence[dict[str, str]], variant: str, other: str) -> list[dict[str, str]]:
    """A row a preset and regime, with what the report makes of the two samples."""
    from incrt.report.statistics import compare, summarise
    from incrt.report.wording import difference_text, mean_text, p_text

    names, other_names = _named(rows, variant), _named(rows, other)
    found = []
    for preset, tau_z in dict.fromkeys((row["preset"], row["tau_z"]) for row in rows):
        here = [row for row in rows if (row["preset"], row["tau_z"]) == (preset, tau_z)]
        runs, others = (_each_once(row for row in here if row["variant"] in each) for each in (names, other_names))
        if not runs or not others:
            continue
        one, two = _deltas(runs), _deltas(others)
        if not one or not two:
            raise ValueError(f"all runs of {variant if two else other} diverged, of preset {preset} and tau_z {tau_z}")
        comparison = compare(one, two)
        found.append(
            {
                "preset": preset,
                "τ_z [s]": f"{float(tau_z):g}",
                f"n: {variant}": str(len(one)),
                f"Δ%: {variant}": mean_text(summarise(one)) or "",
                f"n: {other}": str(len(two)),
                f"Δ%: {other}": mean_text(summarise(two)) or "",
                "difference [Welch95]": difference_text(comparison) or "",
                "p (Mann-Whitney)": p_text(comparison.p) or "",
            }
        )
    if not found:
        raise ValueError(f"no preset and regime has runs of {variant} and of {other}")
    return found


def _named(rows: Sequence[dict[str, str]], variant: str) -> set[str]:
    """The variants that are meant, by name or by an expression for all of it."""
    names = dict.fromkeys(row["variant"] for row in rows)
    try:
        meant = {name for name in names if name == variant or re.fullmatch(variant, name)}
    except re.error as error:
        raise ValueError(f"{variant!r} must be a variant or a regular expression for some, but {error}") from None
    if not meant:
        raise ValueError(f"no run that meets the conditions is of {variant}; there are {_some(names)}")
    return meant


def _across(rows: Sequence[dict[str, str]], shown: Sequence[str]) -> list[dict[str, str]]:
    """The rows that differ in preset and last column alone, as one."""
    if "preset" not in rows[0]:
        raise ValueError(f"{_ACROSS} is for files of several presets, such as 'tables/*/claims.csv'")
    *alike, last = shown
    presets, found = dict.fromkeys(row["preset"] for row in rows), dict[tuple[str, ...], dict[str, str]]()
    for row in rows:
        cells = found.setdefault(tuple(row[column] for column in alike), {column: row[column] for column in alike})
        if row["preset"] in cells:
            apart = [column for column in row if column != "preset" and len({each.get(column) for each in rows}) > 1]
            raise ValueError(
                f"several rows of preset {row['preset']} have the same {', '.join(alike) or 'columns'}; name what "
                f"tells them apart before the last column, of {', '.join(each for each in apart if each not in shown)}"
            )
        cells[row["preset"]] = row[last]
    return [{**dict.fromkeys([*alike, *presets], ""), **cells} for cells in found.values()]


def _each_once(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Of each run one row, whatever studies name it."""
    runs = dict[str, dict[str, str]]()
    for row in rows:
        tested, before = row["condition"], runs.setdefault(row["folder"], row)["condition"]
        if tested != before:
            raise ValueError(
                f"runs were tested under several conditions, such as {_some([before, tested])}; "
                "'condition~^...$' must choose one, 'condition~^$' that of training"
            )
    return list(runs.values())


def _deltas(runs: Sequence[dict[str, str]]) -> list[float]:
    return [float(row["delta_pct"]) for row in runs if row["delta_pct"] and not row["failure"]]


def _left_by_others(
    rows: Sequence[dict[str, str]], conditions: Sequence[tuple[str, re.Pattern[str]]], place: int
) -> str:
    """What is in the column of one condition, in the rows that meet all others."""
    column_here = conditions[place][0]
    others = [each for i, each in enumerate(conditions) if i != place]
    left = [row for row in rows if all(expression.search(row[column]) for column, expression in others)]
    there = _some(row[column_here] for row in left) or "in no row"
    meeting = ", ".join(f"{column}~{expression.pattern}" for column, expression in others)
    return f"{'with ' + meeting if others else 'in its rows'} {column_here} is {there}"


def _condition(word: str) -> tuple[str, re.Pattern[str]]:
    column, _, expression = word.partition("~")
    try:
        return column, re.compile(expression)
    except re.error as error:
        raise ValueError(f"{word!r} must be COLUMN~REGULAR EXPRESSION, but {error}") from None


def _read(name: str) -> tuple[list[dict[str, str]], list[str]]:
    """The rows, and with which columns a table of them begins."""
    files = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob("*.csv"))}
    if (typed := Path(name).resolve()).is_relative_to(FOLDER):  # as the shell completes it
        name = typed.relative_to(FOLDER).as_posix()
    matching = [name] if name in files else fnmatch.filter(files, name)
    if not matching:
        there = textwrap.shorten(", ".join(sorted(files, key=lambda each: each.count("/"))), 600, placeholder=" ...")
        raise ValueError(f"no file of {FOLDER} is or matches {name!r}; there are {there}")
    rows = []
    for each in matching:
        about = {} if each == name else {"preset": files[each].parent.name}
        try:
            with files[each].open(encoding="utf-8", newline="") as file:
                found = list(csv.DictReader(file))
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{each} is no table: {error}") from None
        for row in found:
            if None in row or None in row.values():
                raise ValueError(f"{each} is damaged: a row has not as many cells as there are columns")
        rows += [{**about, **row} for row in found]
    if not rows:
        raise ValueError(f"{name} has no rows")
    return rows, [] if matching == [name] else ["preset"]


def _some(cells: Iterable[str]) -> str:
    """What is in a column, as much of it as a message has room for."""
    return textwrap.shorten(", ".join(dict.fromkeys(map(repr, cells))), 300, placeholder=" ...")


def _cell(text: str) -> str:
    """On one line, rounded where a file has all digits, with real minus signs, which hyphens as in seed-42 are not."""
    if _ALL_DIGITS.fullmatch(text):
        text = f"{float(text):.2f}" if abs(float(text)) >= 1 else f"{float(text):.3g}"
    return re.sub(r"(?<!\w)-(?=\d)", "\N{MINUS SIGN}", " ".join(text.split())) or "\N{EN DASH}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table or refresh documents; bad input ends with what is wrong and status 2."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--refresh", action="store_true", help="the other arguments are documents")
    parser.add_argument("arguments", nargs="+", help="a file, conditions and columns; or documents")
    parser.add_argument(_ACROSS, action="store_true", help="the last column of each preset side by side")
    parser.add_argument(_BETWEEN, nargs=2, metavar=("VARIANT", "OTHER"), help="the variants to be compared")
    options = parser.parse_args(arguments)
    try:
        if options.refresh:
            for path in map(Path, options.arguments):
                path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            between = [_BETWEEN, *options.between] if options.between else []
            print(table([*options.arguments, *between, *([_ACROSS] if options.across else [])]), flush=True)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
