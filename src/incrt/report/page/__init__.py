"""The report as one HTML file that needs nothing else."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from incrt.config import format_seeds
from incrt.report.claims.rules import Judgement, Verdict
from incrt.report.data import Dataset, StudyRecord
from incrt.report.figures.chart import Chart
from incrt.report.figures.drawing import SYMBOL
from incrt.report.tables.table import Table, is_left

_SIGNS: dict[Judgement, str] = {"holds": "✓", "does not hold": "✗", "cannot tell": "?"}
_APART = ("certificates", "times")
"""Tables that stand apart from the others."""
_ASSETS = {"style": "page.css", "script": "page.js"}
_ONE = {"runs": "run", "studies": "study", "presets": "preset"}


def render(
    dataset: Dataset,
    verdicts: Mapping[str, Sequence[Verdict]],
    tables: Mapping[str, Sequence[Table]],
    charts: Mapping[str, Sequence[Chart]],
) -> str:
    """The page; verdicts, tables and charts are by preset."""
    assets = files("incrt.report.page")
    presets = {
        preset: {
            "verdicts": verdicts[preset],
            "figures": charts[preset],
            "tables": [each for each in tables[preset] if each.name not in _APART],
            **{name: [each for each in tables[preset] if each.name == name] for name in _APART},
        }
        for preset in dataset.presets
    }
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["symbols"] = _symbols
    environment.filters["data_uri"] = _data_uri
    environment.filters["align"] = lambda name: "left" if is_left(name) else "right"
    failures, ordered = _failures(dataset), sorted(dataset.studies, key=lambda study: bool(study.trained_by))
    template = environment.from_string((assets / "report.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        title=dataset.title,
        signs=_SIGNS,
        presets=presets,
        counts=counts(dataset),
        filters=_filters(dataset.studies),
        about=_about,
        failed=[(folder, ", ".join(studies), why) for folder, (studies, why) in failures.items()],
        studies=[_asked_for(study, dataset) for study in dataset.studies],
        settings=[(each.name, each.preset, _indented(each.configuration)) for each in dataset.studies],
        made_by=_made_by(dataset),
        commands="\n".join([*dict.fromkeys(study.command for study in ordered), "incrt report DIR"]),
        **{name: Markup((assets / file).read_text(encoding="utf-8")) for name, file in _ASSETS.items()},  # noqa: S704
    )


def _symbols(words: object) -> Markup:
    """Words as HTML; symbols with what stands below the line."""
    return Markup(SYMBOL.sub(r"\1<sub>\2</sub>", str(escape(str(words)))))  # noqa: S704


def _data_uri(svg: bytes) -> Markup:
    """A picture for an attribute in single quotes; shorter than base64, and a repository compresses it better."""
    return Markup("data:image/svg+xml,") + Markup(quote(svg, safe=' "/=:;,()'))  # noqa: S704


def _about(
    preset: str | None,
    studies: Sequence[str | None] = (),
    regimes: Sequence[float | None] = (),
    variants: Sequence[str | None] = (),
) -> dict[str, list[str]]:
    """What a part of the page is about, to be filtered by; nothing of a kind if it is about all of it."""
    names = [None if tau_z is None else f"{tau_z:g}" for tau_z in regimes]
    found = {"preset": [preset], "study": studies, "tau_z": names, "variant": variants}
    words = {kind: [each for each in values if each] for kind, values in found.items()}
    return {kind: values for kind, values in words.items() if values}


def _indented(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def counts(dataset: Dataset) -> dict[str, int]:
    """How many runs there are, each once, whatever studies name it."""
    failed, finished = _failures(dataset), set(dataset.runs["folder"])
    incomplete = {study.name for study in dataset.studies if _over(study, dataset) < study.runs_wanted}
    found = {
        "runs": len(finished | failed.keys()),
        "finished": len(finished - failed.keys()),
        "failed": len(failed),
        "studies": len({study.name for study in dataset.studies}),
        "of them incomplete": len(incomplete),
        "presets": len(dataset.presets),
    }
    return {name if value != 1 else _ONE.get(name, name): value for name, value in found.items()}


def _failures(dataset: Dataset) -> dict[str, tuple[list[str], str]]:
    """Of each failed run the studies that name it, and why it failed."""
    rows = dataset.runs.drop_nulls("failure").select("folder", "study", "failure").rows()
    rows += [(folder, study.name, why) for study in dataset.studies for folder, why in study.failed]
    found: dict[str, tuple[list[str], str]] = {}
    for folder, study, why in rows:
        studies, _ = found.get(folder, ([], ""))
        found[folder] = (list(dict.fromkeys([*studies, study])), why)
    return found


def _over(study: StudyRecord, dataset: Dataset) -> int:
    """Its runs that came to an end, be it a failure of the training."""
    return dataset.runs.filter(study=study.name, preset=study.preset)["folder"].n_unique()


def _filters(studies: Sequence[StudyRecord]) -> dict[str, tuple[str, Sequence[str]]]:
    """What can be ticked: of each kind its heading and its values."""
    regimes = sorted({tau_z for study in studies for tau_z in study.tau_zs})
    return {
        "preset": ("Preset", list(dict.fromkeys(study.preset for study in studies))),
        "tau_z": ("τ_z [s]", [f"{tau_z:g}" for tau_z in regimes]),
        "study": ("Study", list(dict.fromkeys(study.name for study in studies))),
        "variant": ("Variant", list(dict.fromkeys(name for study in studies for name in study.variants))),
    }


def _asked_for(study: StudyRecord, dataset: Dataset) -> list[object]:
    regimes = ", ".join(f"{tau_z:g} / {window}" for tau_z, window in study.regimes)
    about = [study.name, study.preset, study.about, ", ".join(study.variants), regimes]
    return [*about, format_seeds(study.seeds), study.runs_wanted, _over(study, dataset)]


def _made_by(dataset: Dataset) -> list[list[str]]:
    """Headings, and a row each."""
    names = list(dict.fromkeys(name for each in dataset.made_by for name in each))
    return [names, *([each.get(name, "") for name in names] for each in dataset.made_by)] if names else []
