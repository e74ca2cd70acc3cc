"""The report as one HTML file that needs nothing else."""

import html
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template

from plotly.offline import get_plotlyjs

from incrt.report.charts.chart import Chart, all_series, legend
from incrt.report.charts.interactive import chart_json
from incrt.report.claims.verdicts import Judgement, Verdict
from incrt.report.outcomes import Material
from incrt.report.page.markup import embedded_json, swatch, table_box, tag, text
from incrt.report.page.record import configuration, counts, failed_runs, repeat
from incrt.report.tables.table import Table

_SIGNS: dict[Judgement, str] = {"holds": "✓", "does not hold": "✗", "cannot tell": "?"}
_NUMBERS = (
    '<details class="numbers"><summary>Numbers of this figure</summary><div class="tall"><table><thead><tr>'
    '<th scope="col">what</th><th scope="col">value</th></tr></thead><tbody></tbody></table></div></details>'
)
_CERTIFICATES, _TIMES = "certificates", "times"
"""Tables that stand apart from the others."""


def render(
    title: str,
    verdicts: Mapping[str, Sequence[Verdict]],
    tables: Mapping[str, Sequence[Table]],
    charts: Mapping[str, Sequence[Chart]],
    material: Material,
) -> str:
    """The page; verdicts, tables and charts are by preset."""
    own = {
        preset: [each for each in found if each.name not in {_CERTIFICATES, _TIMES}] for preset, found in tables.items()
    }
    certificates = {preset: [each for each in found if each.name == _CERTIFICATES] for preset, found in tables.items()}
    times = [each for found in tables.values() for each in found if each.name == _TIMES]
    drawn = [chart for found in charts.values() for chart in found]
    data = [{"preset": each.preset, "studies": each.studies, **chart_json(each)} for each in drawn]
    assets = files("incrt.report.page") / "assets"
    return Template((assets / "template.html").read_text(encoding="utf-8")).substitute(
        title=text(title),
        plain_title=html.escape(title),
        style=(assets / "page.css").read_text(encoding="utf-8"),
        script=(assets / "page.js").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
        data=embedded_json(data),
        counts=counts(material),
        verdicts=_by_preset({preset: [_verdict_table(preset, found)] for preset, found in verdicts.items()}),
        filters=_filters(material),
        figures=_figures(charts),
        tables=_by_preset({preset: [_table(each) for each in found] for preset, found in own.items()}),
        certificates=_by_preset({preset: [_table(each) for each in found] for preset, found in certificates.items()}),
        failed=failed_runs(material),
        configuration=configuration(material),
        repeat=repeat(material) + "\n".join(map(_table, times)),
    )


def _by_preset(parts: Mapping[str, Iterable[str]]) -> str:
    """A section a preset."""
    sections = [
        tag("section", tag("h3", f"Preset {text(preset)}") + "\n".join(inside), data_preset=preset)
        for preset, inside in parts.items()
    ]
    return "\n".join(sections) or tag("p", "There is nothing yet.")


def _verdict_table(preset: str, verdicts: Sequence[Verdict]) -> str:
    """Claims that runs speak to; below them, folded, those that none does."""
    spoken, silent = ([each for each in verdicts if each.is_open == is_open] for is_open in (False, True))
    said = [verdict.judgement for verdict in spoken]
    summary = ", ".join(f"{judgement}: {said.count(judgement)}" for judgement in _SIGNS)
    parts = [tag("p", summary), _verdict_rows(f"Verdicts, preset {preset}", preset, spoken)] if spoken else []
    if silent:
        heading = tag("summary", f"Claims that no run here speaks to: {len(silent)}")
        parts.append(tag("details", heading + _verdict_rows(f"Open claims, preset {preset}", preset, silent)))
    return "".join(parts)


def _verdict_rows(name: str, preset: str, verdicts: Sequence[Verdict]) -> str:
    head = "".join(tag("th", each, scope="col") for each in ("Verdict", "Claim", "n", "Ours", "The paper's"))
    rows = (_verdict_row(preset, verdict) for verdict in verdicts)
    return tag("div", table_box(name, head, rows, is_caption_shown=False), class_="verdicts")


def _verdict_row(preset: str, verdict: Verdict) -> str:
    said = f"{_SIGNS[verdict.judgement]} {verdict.judgement}"
    claim = f"{text(verdict.claim.sentence)} ({text(verdict.claim.where)})"
    cells = (
        tag("td", said, class_=f"judgement {verdict.judgement.replace(' ', '-')}"),
        tag("th", claim + tag("span", text(verdict.why), class_="why"), scope="row"),
        tag("td", text(verdict.n), data_label="n"),
        tag("td", text(verdict.ours), data_label="Ours"),
        tag("td", text(verdict.claim.paper), data_label="The paper's"),
    )
    return tag("tr", "".join(cells), data_preset=preset)


def _table(table: Table) -> str:
    head = "".join(tag("th", text(each.heading), scope="col", class_=each.align) for each in table.columns)
    rows = []
    for row in table.rows:
        cells = [
            tag(
                "td" if index else "th",
                "&ndash;" if cell is None else text(cell),
                scope=None if index else "row",
                class_=column.align,
            )
            for index, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True))
        ]
        tau_z = None if row.tau_z is None else f"{row.tau_z:g}"
        study = row.cells[0] if table.name in {_CERTIFICATES, _TIMES} else None
        rows.append(
            tag(
                "tr",
                "".join(cells),
                data_preset=row.preset,
                data_tau_z=tau_z,
                data_variant=row.variant,
                data_study=study,
            )
        )
    notes = tag("p", text(" ".join(table.notes)), class_="notes") if table.notes else ""
    return tag("div", table_box(table.title, head, rows) + notes, data_studies=embedded_json(table.studies))


def _filters(material: Material) -> str:
    """Boxes to tick, and below them what is shown."""
    regimes = sorted({tau_z for study in material.studies for tau_z, _ in study.regimes})
    offered: dict[str, tuple[str, Iterable[str]]] = {
        "preset": ("Preset", (study.preset for study in material.studies)),
        "tau_z": ("τ_z [s]", (f"{tau_z:g}" for tau_z in regimes)),
        "study": ("Study", (study.name for study in material.studies)),
        "variant": ("Variant", (name for study in material.studies for name in study.variants)),
    }
    fieldsets = [
        tag("fieldset", tag("legend", text(heading)) + "".join(_box(name, value) for value in dict.fromkeys(values)))
        for name, (heading, values) in offered.items()
    ]
    heading = tag("h2", "Filter figures and tables", id="filters-heading")
    hint = tag("p", "Where nothing is ticked, everything is shown.")
    form = tag("form", heading + hint + "".join(fieldsets), class_="filters", id="filters", autocomplete="off")
    shown = tag("p", "", id="state", role="status") + tag("a", "Change", href="#filters")
    return form + tag("div", shown + tag("button", "Show all", id="reset", type="button"), class_="state")


def _box(name: str, value: str) -> str:
    return tag(
        "label", f'<input type="checkbox" name="{name}" value="{html.escape(value)}">' + tag("span", text(value))
    )


def _figures(charts: Mapping[str, Sequence[Chart]]) -> str:
    numbers = iter(range(sum(map(len, charts.values()))))
    return _by_preset({preset: [_figure(next(numbers), each) for each in found] for preset, found in charts.items()})


def _figure(number: int, chart: Chart) -> str:
    columns = min(chart.columns, len(chart.panels))
    panels = []
    for index, panel in enumerate(chart.panels):
        about = ", ".join(filter(None, (chart.title, panel.title)))
        axes = f"{panel.y_title} over {panel.x_title}" if panel.x_title else panel.y_title
        plot = tag(
            "div", "", class_="plot", role="img", aria_label=f"{about}: {axes}", data_chart=number, data_panel=index
        )
        panels.append(tag("div", (tag("h5", text(panel.title)) if panel.title else "") + plot, class_="panel"))
    names = [
        tag("li", swatch(series) + tag("span", text(series.label)), data_variant=series.variant)
        for series in legend(chart)
    ]
    parts = [
        tag("h4", text(chart.title), id=f"figure-{number}"),
        tag("div", "".join(panels), class_=f"panels columns-{columns}", style=f"--columns:{columns}"),
        tag("ul", "".join(names), class_="legend", aria_label="Legend") if names else "",
        tag("figcaption", tag("p", text(chart.caption))),
        _NUMBERS if any(series.notes for series in all_series(chart)) else "",
    ]
    return tag("figure", "\n".join(parts), aria_labelledby=f"figure-{number}", data_chart=number)
