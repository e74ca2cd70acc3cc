"""Pieces of HTML. Every text is escaped here, and nowhere else."""

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

from incrt.report.charts.chart import SYMBOL, Series


def text(words: object) -> str:
    """Words as HTML; symbols with what stands below the line."""
    return SYMBOL.sub(r"\1<sub>\2</sub>", html.escape(str(words)))


def tag(name: str, inside: str, **attributes: object) -> str:
    """An element around HTML. Attributes are escaped; ``_`` stands for ``-``, None leaves one out."""
    written = (
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{''.join(written)}>{inside}</{name}>"


def table_box(name: str, head: str, rows: Iterable[str], *, is_caption_shown: bool = True) -> str:
    """A table that scrolls in a box of its own where it is too wide."""
    caption = tag("caption", text(name)) if is_caption_shown else ""
    body = tag("thead", tag("tr", head)) + tag("tbody", "\n".join(rows))
    # What scrolls must be reached by the keyboard.
    return tag("div", tag("table", caption + body), class_="box", tabindex=0, role="region", aria_label=name)


def plain_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts; the first cell of a row names it."""
    head = "".join(tag("th", text(heading), scope="col") for heading in headings)
    return table_box(
        caption,
        head,
        (
            tag("tr", tag("th", text(row[0]), scope="row") + "".join(tag("td", text(cell)) for cell in row[1:]))
            for row in rows
        ),
    )


def embedded_json(value: Any) -> str:
    """JSON that may stand in a script element: no text in it can end the element or open a comment."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


_DASHES = {
    "solid": "",
    "dash": "6 3",
    "longdash": "10 4",
    "dot": "1.5 2.5",
    "dashdot": "6 2.5 1.5 2.5",
    "longdashdot": "10 2.5 1.5 2.5",
}
_SHAPES = {
    "circle": "M12 2.5a4.5 4.5 0 1 0 .01 0z",
    "square": "M8 3h8v8H8z",
    "diamond": "M12 1.5l5.5 5.5-5.5 5.5-5.5-5.5z",
    "triangle-up": "M12 2l5 9H7z",
    "triangle-down": "M12 12l5-9H7z",
    "cross": "M10.3 2h3.4v3.3H17v3.4h-3.3V12h-3.4V8.7H7V5.3h3.3z",
    "x": "M8.5 2L12 5.2 15.5 2 17 3.5 13.8 7 17 10.500 15.500 12 12 8.800 8.500 12 7 10.500 10.200 7 7 3.500z",
}


def swatch(series: Series) -> str:
    """What stands before a name in a legend."""
    colour = series.colour
    if series.kind == "bar":
        inner = (
            f'<rect x="4" y="2" width="16" height="10" fill="{"none" if series.hollow else colour}" stroke="{colour}"/>'
        )
        if series.hollow:
            inner += f'<path d="M4 8l6-6M4 12l10-10M10 12l10-10M16 12l4-4" stroke="{colour}" stroke-width=".8"/>'
    elif series.kind == "band":
        inner = f'<rect x="4" y="2" width="16" height="10" fill="{colour}" fill-opacity="{series.opacity:g}"/>'
    elif series.kind == "points":
        fill = "none" if series.hollow else colour
        inner = f'<path d="{_SHAPES[series.marker]}" fill="{fill}" stroke="{colour}"/>'
    else:
        inner = f'<path d="M0 7h24" stroke="{colour}" stroke-width="2" stroke-dasharray="{_DASHES[series.dash]}"/>'
    return f'<svg width="24" height="14" aria-hidden="true">{inner}</svg>'
