"""How long the commands took that ran the studies, and how long the paper's set-up would have taken."""

from collections.abc import Sequence

from incrt.report import paper, schema
from incrt.report.selection import Runs
from incrt.report.tables.cells import Cells
from incrt.report.tables.table import Row, Table
from incrt.report.wording import number

_NOTES = (
    "A part is what of the study the command was to train, all of it if nothing is said.",
    "A batch is the most runs that were trained together.",
    "All times but the wall's are those of workers, added up: more than the wall's where several worked at once.",
    "Runs trained are those that the command trained from their first step to their last; the time of others counts.",
    "Workers and commands that died are not counted, and commands that ran side by side shared the device.",
    f"The paper trains run by run, {paper.MINUTES_A_RUN[0]} to {paper.MINUTES_A_RUN[1]} minutes each on an A100.",
    "How many times as fast, once counts training alone, and once the command's wall time with all that it did.",
)


def times_table(runs: Runs) -> Table | None:
    """One row a command; those of other lengths of training than the paper's are not compared with it."""
    lengths = {study.name: {each["sac"]["steps"] for each in study.configuration.values()} for study in runs.studies}
    commands = runs.dataset.commands.filter(preset=runs.preset).to_dicts()
    rows = tuple(Row(_cells(each, alike=lengths.get(each["study"]) == {paper.STEPS}), runs.preset) for each in commands)
    title = f"Commands and their times, preset {runs.preset}"
    return Table("times", title, tuple(rows[0].cells), rows, _NOTES) if rows else None


def _cells(command: schema.Row, *, alike: bool) -> Cells:
    hours = [command["runs"] * minutes / 60 for minutes in paper.MINUTES_A_RUN]
    compared = alike and command["runs"] > 0 and command["train_s"] > 0

    def times_as_fast(seconds: float) -> str | None:
        return _span([3600 * each / seconds for each in hours], 0) if compared else None

    return {
        "study": command["study"],
        "seeds": command["seeds"],
        "part": command["part"] or None,
        "batch": str(command["batch"]),
        "begun": command["begun"],
        "wall [s]": number(command["wall_s"], 1),
        "runs trained": str(command["runs"]),
        "training [s]": number(command["train_s"], 1),
        "compiling [s]": number(command["compile_s"], 1),
        "evaluation [s]": number(command["evaluate_s"], 1),
        "paper: wall [A100 h]": _span(hours, 1) if compared else None,
        "training: times as fast": times_as_fast(command["train_s"]),
        "wall: times as fast": times_as_fast(command["wall_s"]),
    }


def _span(values: Sequence[float], digits: int) -> str:
    return " to ".join(number(each, digits) or "" for each in values)
