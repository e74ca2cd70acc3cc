"""A table as a record, and as Markdown, CSV and LaTeX."""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

_LEFT = {"variant", "condition", "compared with", "study", "seeds", "part", "begun"}
_LEFT |= {"claim", "ours", "paper", "verdict", "why", "where in the paper"}
"""Columns of words; all others are of numbers."""
_MISSING = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"
_LATEX = {
    "τ_z": r"$\tau_z$",
    "K_max": r"$K_{\max}$",
    "Δ%": r"$\Delta\%$",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_LATEX |= {"<": "$<$", ">": "$>$", "≤": r"$\le$", "≥": r"$\ge$", "±": r"$\pm$", _MINUS: "$-$", _MISSING: "--"}
_LATEX |= {"Δ": r"$\Delta$", "τ": r"$\tau$", "β": r"$\beta$"}
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))


@dataclass(frozen=True)
class Row:
    """Cells, and what they are about. A row without a variant, such as a controller's, belongs to all."""

    cells: Mapping[str, str | None]
    """By heading; what is not there or None has nothing to say."""
    preset: str
    tau_z: float | None = None
    variant: str | None = None


@dataclass(frozen=True)
class Table:
    """A table; its texts are plain, each form escapes what it must."""

    name: str
    """Of its file: letters, digits, hyphens and underscores."""
    title: str
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    """Sentences to stand below it."""
    studies: tuple[str, ...] = ()
    """Whose runs are in it; a table without any is of all."""

    def lines(self, missing: str = _MISSING) -> list[list[str]]:
        """The cells of each row, in the order of the headings."""
        return [
            [missing if (cell := row.cells.get(name)) is None else cell for name in self.headings] for row in self.rows
        ]


def is_left(heading: str) -> bool:
    """Where the text of a column stands in it."""
    return heading in _LEFT


def to_markdown(table: Table) -> str:
    """The table as GitHub reads it."""
    rules = [":---" if is_left(heading) else "---:" for heading in table.headings]
    lines = [table.headings, rules, *table.lines()]
    body = "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
    return "\n\n".join([f"### {table.title}", body, *table.notes]) + "\n"


def to_csv(table: Table) -> str:
    """Headings and cells alone; minus signs as computers read them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.headings)
    writer.writerows([[cell.replace(_MINUS, "-") for cell in line] for line in table.lines("")])
    return text.getvalue()


def to_latex(table: Table) -> str:
    """A floating table for a document that uses booktabs."""
    heading, *lines = (" & ".join(map(escape_latex, line)) + r" \\" for line in (table.headings, *table.lines()))
    parts = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table}",
        r"\centering\footnotesize",
        rf"\caption{{{escape_latex(' '.join([table.title + '.', *table.notes]))}}}",
        rf"\label{{tab:{re.sub(r'[^a-z0-9]+', '-', table.title.lower()).strip('-')}}}",
        r"\setlength{\tabcolsep}{4pt}",
        r"\resizebox{\linewidth}{!}{%",
        rf"\begin{{tabular}}{{{''.join('l' if is_left(each) else 'r' for each in table.headings)}}}",
        *(r"\toprule", heading, r"\midrule", *lines, r"\bottomrule"),
        *(r"\end{tabular}}", r"\end{table}", ""),
    ]
    return "\n".join(parts)


def escape_latex(text: str) -> str:
    """Plain text as LaTeX sets it."""
    return _SPECIAL.sub(lambda found: _LATEX[found.group()], text)
