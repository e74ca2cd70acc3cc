"""How long the commands took that ran the studies, and how long the paper's set-up would have taken."""

from collections.abc import Sequence

from incrt.report import paper
from incrt.report.outcomes import Command, StudyRecord
from incrt.report.tables.table import Column, Row, Table
from incrt.report.wording import number

_COLUMNS = (
    Column("study", "left"),
    Column("seeds", "left"),
    Column("part", "left"),
    Column("batch"),
    Column("begun", "left"),
    Column("wall [s]"),
    Column("runs trained"),
    Column("training [s]"),
    Column("compiling [s]"),
    Column("evaluation [s]"),
    Column("paper: wall [A100 h]"),
    Column("training: times as fast"),
    Column("wall: times as fast"),
)
_NOTES = (
    "A part is what of the study the command was to train, all of it if nothing is said.",
    "A batch is the most runs that were trained together.",
    "All times but the wall's are those of workers, added up: more than the wall's where several worked at once.",
    "Runs trained are those that the command trained from their first step to their last; the time of others counts.",
    "Workers and commands that died are not counted, and commands that ran side by side shared the device.",
    f"The paper trains run by run, {paper.MINUTES_A_RUN[0]} to {paper.MINUTES_A_RUN[1]} minutes each on an A100.",
    "How many times as fast, once counts training alone, and once the command's wall time with all that it did.",
)


def times_table(commands: Sequence[Command], studies: Sequence[StudyRecord], preset: str) -> Table:
    """One row a command; those of other lengths of training than the paper's are not compared with it."""
    alike = {study.name for study in studies if _steps(study) == {paper.STEPS}}
    rows = tuple(Row(_cells(each, alike=each.study in alike), preset) for each in commands if each.preset == preset)
    return Table("times", f"Commands and their times, preset {preset}", _COLUMNS, rows, _NOTES)


def _steps(study: StudyRecord) -> set[int]:
    return {settings["sac"]["steps"] for settings in study.configuration.values()}


def _cells(command: Command, *, alike: bool) -> tuple[str | None, ...]:
    hours = [command.runs * minutes / 60 for minutes in paper.MINUTES_A_RUN]
    compared = alike and command.runs > 0 and command.train_s > 0
    return (
        command.study,
        command.seeds,
        command.part or None,
        str(command.batch),
        command.begun,
        number(command.wall_s, 1),
        str(command.runs),
        number(command.train_s, 1),
        number(command.compile_s, 1),
        number(command.evaluate_s, 1),
        _span(hours, 1) if compared else None,
        *(
            _span([3600 * each / s for each in hours], 0) if compared else None
            for s in (command.train_s, command.wall_s)
        ),
    )


def _span(values: Sequence[float], digits: int) -> str:
    return " to ".join(number(each, digits) or "" for each in values)
