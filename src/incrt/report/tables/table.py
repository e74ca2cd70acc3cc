"""A table as a record, and as Markdown, CSV and LaTeX."""

import csv
import io
import re
from dataclasses import dataclass
from typing import Literal

Align = Literal["left", "right", "center"]

_MISSING = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"
_MARKDOWN_RULES = {"left": ":---", "right": "---:", "center": ":---:"}
_LATEX = {
    "τ_z": r"$\tau_z$",
    "K_max": r"$K_{\max}$",
    "Δ%": r"$\Delta\%$",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "<": "$<$",
    ">": "$>$",
    "Δ": r"$\Delta$",
    "τ": r"$\tau$",
    "β": r"$\beta$",
    "±": r"$\pm$",
    _MINUS: "$-$",
    _MISSING: "--",
    "≤": r"$\le$",
    "≥": r"$\ge$",
}
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))


@dataclass(frozen=True)
class Column:
    """What stands above a column, and where its text stands in it."""

    heading: str
    align: Align = "right"


@dataclass(frozen=True)
class Row:
    """Cells, and what they are about. A row without a variant, such as a reference controller's, belongs to all."""

    cells: tuple[str | None, ...]
    """None where there is nothing to say."""
    preset: str | None = None
    tau_z: float | None = None
    variant: str | None = None


@dataclass(frozen=True)
class Table:
    """A table; its texts are plain, each form escapes what it must."""

    name: str
    """Of its file: letters, digits, hyphens and underscores."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    """Sentences to stand below it."""
    studies: tuple[str, ...] = ()
    """Whose runs are in it; a table without any is of all."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(f"table {self.name}: a row must have {len(self.columns)} cells, got {row.cells}")


def to_markdown(table: Table) -> str:
    """The table as GitHub reads it."""
    lines = [
        [column.heading for column in table.columns],
        [_MARKDOWN_RULES[column.align] for column in table.columns],
        *([_MISSING if cell is None else cell for cell in row.cells] for row in table.rows),
    ]
    body = "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
    return "\n\n".join([f"### {table.title}", body, *table.notes]) + "\n"


def to_csv(table: Table) -> str:
    """Headings and cells alone; minus signs as computers read them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.heading for column in table.columns])
    writer.writerows([["" if cell is None else cell.replace(_MINUS, "-") for cell in row.cells] for row in table.rows])
    return text.getvalue()


def to_latex(table: Table) -> str:
    """A floating table for a document that uses booktabs."""

    def line(cells: list[str]) -> str:
        return " & ".join(map(escape_latex, cells)) + r" \\"

    return "\n".join(
        [
            r"% needs \usepackage{booktabs,graphicx}",
            r"\begin{table}",
            r"\centering\footnotesize",
            rf"\caption{{{escape_latex(' '.join([table.title + '.', *table.notes]))}}}",
            rf"\label{{tab:{re.sub(r'[^a-z0-9]+', '-', table.title.lower()).strip('-')}}}",
            r"\setlength{\tabcolsep}{4pt}",
            r"\resizebox{\linewidth}{!}{%",
            rf"\begin{{tabular}}{{{''.join(column.align[0] for column in table.columns)}}}",
            r"\toprule",
            line([column.heading for column in table.columns]),
            r"\midrule",
            *(line([_MISSING if cell is None else cell for cell in row.cells]) for row in table.rows),
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def escape_latex(text: str) -> str:
    """Plain text as LaTeX sets it."""
    return _SPECIAL.sub(lambda found: _LATEX[found.group()], text)
