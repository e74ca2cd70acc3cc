"""The parts of the page that say what was run: counts, failures, configuration, commands."""

import json
from collections import defaultdict

from incrt.config import format_seeds
from incrt.report.outcomes import Material, StudyRecord
from incrt.report.page.markup import plain_table, tag, text

_ONE = {"runs": "run", "studies": "study", "presets": "preset"}


def counts(material: Material) -> str:
    """How many runs there are, each once, whatever studies name it."""
    failed = _failures(material)
    finished = {each.folder for each in material.outcomes} - failed.keys()
    figures = {
        "runs": len(finished) + len(failed),
        "finished": len(finished),
        "failed": len(failed),
        "studies": len({each.name for each in material.studies}),
        "of them incomplete": len({each.name for each in material.studies if _over(each, material) < each.runs_wanted}),
        "presets": len({each.preset for each in material.studies}),
    }
    words = {name: name if value != 1 else _ONE.get(name, name) for name, value in figures.items()}
    entries = (tag("div", tag("dt", words[name]) + tag("dd", str(value))) for name, value in figures.items())
    return tag("dl", "".join(entries), class_="counts")


def failed_runs(material: Material) -> str:
    """Which, of which studies, and why."""
    failed = _failures(material)
    if not failed:
        return tag("p", "None.")
    rows = ((folder, ", ".join(studies), why) for folder, (studies, why) in failed.items())
    return plain_table("Failed runs", ("Run", "Study", "Why"), rows)


def _failures(material: Material) -> dict[str, tuple[list[str], str]]:
    """Of each failed run the studies that name it, and why it failed."""
    studies: defaultdict[str, dict[str, None]] = defaultdict(dict)
    why = {}
    for outcome in material.outcomes:
        if outcome.failure is not None:
            studies[outcome.folder][outcome.study] = None
            why[outcome.folder] = outcome.failure
    for record in material.studies:
        for folder, reason in record.failed:
            studies[folder][record.name] = None
            why[folder] = reason
    return {folder: (list(studies[folder]), why[folder]) for folder in why}


def configuration(material: Material) -> str:
    """What was asked for, all settings of it, and by what it was trained."""
    rows = (_asked_for(record, material) for record in material.studies)
    headings = ("Study", "Preset", "About", "Variants", "τ_z [s] / window", "Seeds", "Runs asked for", "Runs over")
    parts = [plain_table("Studies", headings, rows)]
    for record in material.studies:
        settings = json.dumps(record.configuration, indent=1, ensure_ascii=False)
        summary = tag("summary", f"All settings of {text(record.name)}, preset {text(record.preset)}")
        parts.append(tag("details", summary + tag("pre", text(settings), class_="tall", tabindex=0)))
    names = list(dict.fromkeys(name for each in material.made_by for name in each))
    made_by = ([each.get(name, "") for name in names] for each in material.made_by)
    return "\n".join([*parts, plain_table("TrainedRun by", names, made_by) if names else ""])


def _over(record: StudyRecord, material: Material) -> int:
    """Its runs that came to an end, be it a failure of the training."""
    own = (each for each in material.outcomes if (each.study, each.preset) == (record.name, record.preset))
    return len({each.folder for each in own})


def _asked_for(record: StudyRecord, material: Material) -> list[object]:
    return [
        record.name,
        record.preset,
        record.about,
        ", ".join(record.variants),
        ", ".join(f"{tau_z:g} / {window}" for tau_z, window in record.regimes),
        format_seeds(record.seeds),
        record.runs_wanted,
        _over(record, material),
    ]


def repeat(material: Material) -> str:
    """The commands, those of studies that only test what others trained last."""
    ordered = sorted(material.studies, key=lambda record: bool(record.trained_by))
    commands = "\n".join([*dict.fromkeys(record.command for record in ordered), "incrt report DIR"])
    words = "In an environment where incrt is installed, at the commits that stand under Configuration:"
    return tag("p", words) + tag("pre", text(commands), tabindex=0)
