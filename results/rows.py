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
from typing import NamedTuple

import polars as pl

from incrt.report.schema import NUMBER, text_frame

_BETWEEN, _ACROSS = "--between", "--across"
_OF_RUNS = ("preset", "tau_z", "variant", "folder", "condition", "failure", "delta_pct")
_ALL_DIGITS = re.compile(r"-?\d+\.\d{7,}|-?\d+(\.\d+)?e-?\d+")
FOLDER = Path(__file__).resolve().parent
COMMAND = re.compile(
    r"^(?P<command>`python results/rows\.py (?!--)(?P<arguments>[^`\n]+)`)$\n*(?P<table>(?:^\|.*\n?)*)\n*", re.MULTILINE
)


class Condition(NamedTuple):
    """A column, and what is to be found in it."""

    column: str
    expression: re.Pattern[str]

    def __str__(self) -> str:
        return f"{self.column}~{self.expression.pattern}"


def table(arguments: Sequence[str]) -> str:
    """What a command prints. Its arguments: a file or a pattern, then conditions and columns."""
    name, *rest = [word for word in arguments if word != _ACROSS]
    words, compared = _split(rest)
    conditions = [_condition(word) for word in words if "~" in word]
    shown = [word for word in words if "~" not in word]
    rows, first = _read(name)
    there = ", ".join(rows.columns)
    if compared and _ACROSS in arguments:
        raise ValueError(f"{_BETWEEN} and {_ACROSS} do not go together")
    if compared and not {*_OF_RUNS} <= {*rows.columns}:
        raise ValueError(f"{_BETWEEN} is for tables of runs, such as runs.csv; {name} is none")
    for column in [*shown, *(each.column for each in conditions)]:
        if column not in rows.columns:
            raise ValueError(f"{name} has no column {column!r}; it has {there}")
    if not shown and not compared:
        raise ValueError(f"no column of {name} is named; it has {there}")
    found = _meeting(rows, conditions)
    if not len(found):
        left = "; ".join(_left_by_others(rows, conditions, each) for each in conditions)
        raise ValueError(f"no row of {name} meets all conditions; {left}")
    if compared:
        found = _compared(found, *compared)
    elif _ACROSS in arguments:
        found = _across(found, shown)
    else:
        found = found.select(list(dict.fromkeys([*first, *shown])))
    lines = [found.columns, ["---"] * found.width, *(map(_cell, row) for row in found.rows())]
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


def _condition(word: str) -> Condition:
    column, _, expression = word.partition("~")
    try:
        return Condition(column, re.compile(expression))
    except re.error as error:
        raise ValueError(f"{word!r} must be COLUMN~REGULAR EXPRESSION, but {error}") from None


def _meeting(rows: pl.DataFrame, conditions: Iterable[Condition]) -> pl.DataFrame:
    """Not by polars' own expressions, which know no lookahead."""
    for column, expression in conditions:
        rows = rows.filter(pl.Series([bool(expression.search(cell)) for cell in rows[column]], dtype=pl.Boolean))
    return rows


def _left_by_others(rows: pl.DataFrame, conditions: Sequence[Condition], condition: Condition) -> str:
    """What is in the column of one condition, in the rows that meet all others."""
    others = [each for each in conditions if each is not condition]
    there = _some(_meeting(rows, others)[condition.column]) or "in no row"
    return f"{'with ' + ', '.join(map(str, others)) if others else 'in its rows'} {condition.column} is {there}"


def _read(name: str) -> tuple[pl.DataFrame, list[str]]:
    """The rows, and with which columns a table of them begins."""
    files = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob("*.csv"))}
    if (typed := Path(name).resolve()).is_relative_to(FOLDER):  # as the shell completes it
        name = typed.relative_to(FOLDER).as_posix()
    matching = [name] if name in files else fnmatch.filter(files, name)
    if not matching:
        there = textwrap.shorten(", ".join(sorted(files, key=lambda each: each.count("/"))), 600, placeholder=" ...")
        raise ValueError(f"no file of {FOLDER} is or matches {name!r}; there are {there}")
    frames = []
    for each in matching:
        try:
            frame = text_frame(files[each].read_text(encoding="utf-8"))
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{each} is no table: {error}") from None
        except ValueError as error:
            raise ValueError(f"{each} is damaged: {error}") from None
        about = [] if each == name else [pl.lit(files[each].parent.name).alias("preset")]
        frames.append(frame.select(*about, pl.exclude("preset") if about else pl.all()))
    common = [column for column in frames[0].columns if all(column in frame.columns for frame in frames)]
    rows = pl.concat(frame.select(common) for frame in frames)
    if not len(rows):
        raise ValueError(f"{name} has no rows")
    return rows, [] if matching == [name] else ["preset"]


def _compared(rows: pl.DataFrame, variant: str, other: str) -> pl.DataFrame:
    """A row a preset and regime, with what the report makes of the two samples."""
    from incrt.report.statistics import compare, summarise
    from incrt.report.wording import difference_text, mean_text, p_text

    named = [pl.col("variant").is_in(_named(rows, each)) for each in (variant, other)]
    found = []
    for (preset, tau_z), here in rows.group_by("preset", "tau_z", maintain_order=True):
        runs = [_each_once(here.filter(each)) for each in named]
        if not all(map(len, runs)):
            continue
        one, two = map(_deltas, runs)
        if not one or not two:
            raise ValueError(f"all runs of {variant if two else other} diverged, of preset {preset} and tau_z {tau_z}")
        comparison = compare(one, two)
        cells = {"preset": str(preset), "τ_z [s]": f"{float(str(tau_z)):g}"}
        for name, sample in ((variant, one), (other, two)):
            cells |= {f"n: {name}": str(len(sample)), f"Δ%: {name}": mean_text(summarise(sample)) or ""}
        cells["difference [Welch95]"] = difference_text(comparison) or ""
        found.append(cells | {"p (Mann-Whitney)": p_text(comparison.p) or ""})
    if not found:
        raise ValueError(f"no preset and regime has runs of {variant} and of {other}")
    return pl.DataFrame(found)


def _named(rows: pl.DataFrame, variant: str) -> list[str]:
    """The variants that are meant, by name or by an expression for all of it."""
    names = rows["variant"].unique(maintain_order=True)
    try:
        meant = [name for name in names if name == variant or re.fullmatch(variant, name)]
    except re.error as error:
        raise ValueError(f"{variant!r} must be a variant or a regular expression for some, but {error}") from None
    if not meant:
        raise ValueError(f"no run that meets the conditions is of {variant}; there are {_some(names)}")
    return meant


def _each_once(rows: pl.DataFrame) -> pl.DataFrame:
    """Of each run one row, whatever studies name it."""
    tests = rows.group_by("folder", maintain_order=True).agg(pl.col("condition").unique(maintain_order=True))
    if several := [names.to_list() for names in tests["condition"] if len(names) > 1]:
        raise ValueError(
            f"runs were tested under several conditions, such as {_some(several[0][:2])}; "
            "'condition~^...$' must choose one, 'condition~^$' that of training"
        )
    return rows.unique("folder", keep="first", maintain_order=True)


def _deltas(rows: pl.DataFrame) -> list[float]:
    return rows.filter(pl.col("delta_pct") != "", failure="")["delta_pct"].cast(NUMBER).to_list()


def _across(rows: pl.DataFrame, shown: Sequence[str]) -> pl.DataFrame:
    """The rows that differ in preset and last column alone, as one."""
    if "preset" not in rows.columns:
        raise ValueError(f"{_ACROSS} is for files of several presets, such as 'tables/*/claims.csv'")
    *alike, last = shown
    twice = rows.filter(rows.select("preset", *alike).is_duplicated())
    if len(twice):
        apart = [name for name in rows.columns if name not in {"preset", *shown} and rows[name].n_unique() > 1]
        raise ValueError(
            f"several rows of preset {twice['preset'][0]} have the same {', '.join(alike) or 'columns'}; name what "
            f"tells them apart before the last column, of {', '.join(apart)}"
        )
    # A column that all rows share, so that there may be no other.
    wide = rows.select(pl.lit("").alias("\0"), "preset", *dict.fromkeys([*alike, last]))
    found = wide.pivot("preset", index=["\0", *alike], values=last, maintain_order=True).drop("\0")
    return found.fill_null("")


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
