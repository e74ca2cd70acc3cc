"""The row model: every column of ``runs.csv``, ``references.csv`` and ``commands.csv``, said once.

Frames of these tables have exactly these columns and types; a file that does not fit is refused by row and column.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

TEXT, WHOLE, NUMBER, FLAG = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
WORDS = {TEXT: "text", WHOLE: "a whole number", NUMBER: "a number", FLAG: "True or False"}

Row = dict[str, Any]
"""One row of a frame, by column."""


class Column(NamedTuple):
    """What a column holds."""

    name: str
    dtype: pl.DataType
    about: str
    unit: str = ""
    nullable: bool = False
    """Whether nothing may be known; a text that is not nullable may be empty."""
    is_new: bool = False
    """Whether files of a version before lack it."""


RUNS = (
    Column("study", TEXT, "Name of the study; several studies may name the same run."),
    Column("preset", TEXT, "Name of the preset that the task was set by."),
    Column("variant", TEXT, "Name of the variant in its study, such as runtime or K_max 2."),
    Column("tau_z", NUMBER, "Time constant of the friction's memory: the regime.", "s"),
    Column("window", WHOLE, "Observations that the policy sees.", "control steps"),
    Column("seed", WHOLE, "Of the training."),
    Column("condition", TEXT, "Name of what it was tested on; empty for what it was trained on."),
    Column("folder", TEXT, "Of the run in the folder of studies, by which a run is known."),
    Column("steps", WHOLE, "Length of the training that was asked for.", "environment steps"),
    Column("failure", TEXT, "Why training stopped early; the metrics of such a run do not count.", nullable=True),
    Column("rmse", NUMBER, "Tracking error; none where the arm was lost (1 rad or more).", "rad", nullable=True),
    Column("delta_pct", NUMBER, "Change of the RMSE against the baseline controller's.", "%", nullable=True),
    Column("success", FLAG, "Whether it was trained to its end and its RMSE is below 0.10 rad."),
    Column("headroom_closed", NUMBER, "Way from the best constant gains (0) to clairvoyant (1).", nullable=True),
    Column("max_error", NUMBER, "Largest tracking error.", "rad", nullable=True),
    Column("torque_rms", NUMBER, "Root mean square of the torque.", "N m", nullable=True),
    Column("torque_tv", NUMBER, "Total variation of the torque.", "N m", nullable=True),
    Column("shield_active_pct", NUMBER, "Part of the steps in which the shield acted.", "%", nullable=True),
    Column("encoder", TEXT, "Kind of the encoder."),
    Column("k_max", WHOLE, "Head-count cap.", "heads"),
    Column("heads", WHOLE, "K at the end; 0 for an encoder without heads.", "heads"),
    Column("grows", WHOLE, "How often a head grew."),
    Column("prunes", WHOLE, "How often a head was pruned."),
    Column("certificates_held", WHOLE, "Of all grows and prunes."),
    Column("last_grow", WHOLE, "Step of the last growth.", "environment steps", nullable=True),
    Column("saturated_at", WHOLE, "Step from which on K = K_max.", "environment steps", nullable=True),
    Column("largest_grow_jump", NUMBER, "Of the policy at a growth; infinite if not finite.", nullable=True),
    Column("largest_prune_jump", NUMBER, "Mean over a batch, as a part of its bound.", nullable=True),
    Column("worst_prune_jump", NUMBER, "The same of the context that jumped most.", nullable=True),
    Column("inside", FLAG, "Whether K ended where Proposition 3 has it.", nullable=True),
    Column("rank_settled", FLAG, "Whether the rank came to rest, as the proposition assumes.", nullable=True),
    Column("cumulative_holds", FLAG, "Whether all jumps keep to the corollary's bound.", nullable=True),
    Column("beta", NUMBER, "Largest share of a head over the smallest, at the end.", nullable=True),
)
"""One row a run and test."""
RUN_KEY = ("study", "preset", "variant", "tau_z", "seed", "condition")
METRICS = ("rmse", "delta_pct", "headroom_closed", "max_error", "torque_rms", "torque_tv")
"""What is measured of a run and of a controller alike."""
_RUN_COLUMNS = {column.name: column for column in RUNS}
CONTROLLERS = (
    *(_RUN_COLUMNS[name] for name in ("study", "preset")),
    Column("variant", TEXT, "On whose task it was tuned and tested; empty where all variants have the same one."),
    *(_RUN_COLUMNS[name] for name in ("tau_z", "condition")),
    Column("controller", TEXT, "Its name."),
    *(_RUN_COLUMNS[name] for name in METRICS),
)
"""One row a reference controller and test."""
CONTROLLER_KEY = ("study", "preset", "variant", "tau_z", "condition")
"""A test; every controller has a row of it."""
COMMANDS = (
    Column("study", TEXT, "That it ran."),
    Column("preset", TEXT, "Of the study."),
    Column("seeds", TEXT, "As they were asked for."),
    Column("batch", WHOLE, "Most runs that were trained together."),
    Column("begun", TEXT, "Date and time, UTC."),
    Column("wall_s", NUMBER, "From its begin to its end.", "s"),
    Column("runs", WHOLE, "That it trained from their first step to their last."),
    Column("train_s", NUMBER, "Training, added up over workers.", "s"),
    Column("compile_s", NUMBER, "Compiling, added up over workers.", "s"),
    Column("evaluate_s", NUMBER, "Evaluation, added up over workers.", "s"),
    Column("part", TEXT, "What of the study it was to train; empty for all of it.", is_new=True),
)
"""One row a command that ran a study and was not killed."""

Columns = tuple[Column, ...]


def to_frame(rows: Iterable[Mapping[str, Any]], columns: Columns) -> pl.DataFrame:
    """Rows as a frame of a table; values of another type are refused."""
    try:
        return pl.DataFrame(list(rows), {column.name: column.dtype for column in columns}, orient="row")
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"a row does not fit its table: {str(error).partition(';')[0]}") from None


def to_csv(frame: pl.DataFrame) -> str:
    """A line a row; nothing for what is not known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(frame.iter_rows())
    return text.getvalue().replace("\r", " ")  # which would end a line when it is read


def text_frame(text: str) -> pl.DataFrame:
    """The cells of any CSV file as they are written; polars' own reader takes a row that is cut off for a whole one."""
    names, *rows = [*csv.reader(io.StringIO(text))] or [[]]
    for number, cells in enumerate(rows, 1):
        if len(cells) != len(names):
            raise ValueError(f"row {number} must have {len(names)} cells, got {len(cells)}")
    return pl.DataFrame(rows, dict.fromkeys(names, TEXT), orient="row")


def from_csv(text: str, columns: Columns) -> pl.DataFrame:
    """What :func:`to_csv` wrote of a table; what it cannot have written is refused."""
    names, found = [column.name for column in columns], text.partition("\n")[0].split(",")
    if found not in (names, [column.name for column in columns if not column.is_new]):
        raise ValueError(f"the first line must be {','.join(names)}")
    if not text.endswith("\n"):
        raise ValueError("it ends in the middle of a line")
    frame = text_frame(text).with_columns(pl.lit("").alias(name) for name in names if name not in found)
    return frame.select(_parsed(frame[column.name], column) for column in columns)


def _parsed(cells: pl.Series, column: Column) -> pl.Series:
    """The cells of a column as its type."""
    if column.dtype != TEXT or column.nullable:
        cells = cells.replace("", None)
    if column.dtype == FLAG:
        values = cells.replace_strict({"True": True, "False": False}, default=None, return_dtype=FLAG)
    else:
        values = cells.cast(column.dtype, strict=False)
    wrong = values.is_null() & (cells.is_not_null() | (not column.nullable))
    if (place := wrong.arg_max()) is not None and wrong[place]:
        said = f"{column.name} must be {WORDS[column.dtype]}, got {cells[place] or ''!r}"
        raise ValueError(f"row {place + 1}: {said}")
    return values
