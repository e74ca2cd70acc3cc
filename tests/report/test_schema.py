"""The row model: what does not fit is refused by a sentence, what fits reads back, and documents say what it is."""

from pathlib import Path

import pytest
from made_up import a_run, around, sample

from incrt.report.schema import COMMANDS, CONTROLLERS, RUNS, WORDS, Column, from_csv, text_frame, to_csv, to_frame


def described(columns: tuple[Column, ...]) -> str:
    """The columns of a table as Markdown."""
    lines = [("column", "type", "unit", "what it is"), ("---",) * 4]
    for column in columns:
        kind = WORDS[column.dtype] + (", or nothing" if column.nullable else "")
        lines.append((f"`{column.name}`", kind, column.unit, column.about))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@pytest.mark.parametrize("columns", [RUNS, CONTROLLERS, COMMANDS])
def test_the_columns_are_those_of_the_document(columns: tuple[Column, ...]) -> None:
    assert described(columns) in (Path(__file__).parents[2] / "results" / "README.md").read_text(encoding="utf-8")


def test_rows_read_back_with_their_types() -> None:
    odd = a_run(
        "main", "a,b", 5.0, None, failure='said "no",\nthen\r nothing', largest_grow_jump=float("inf"), inside=None
    )
    frame = to_frame([*sample("main", "runtime", 2.0, around(-50, 0.1)), odd], RUNS)
    found = from_csv(to_csv(frame), RUNS)
    assert found.schema == frame.schema
    assert found.drop("failure").equals(frame.drop("failure"))
    assert found["failure"][-1] == 'said "no",\nthen  nothing'


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("seed", "4.5", "row 1: seed must be a whole number, got '4.5'"),
        ("seed", "", "row 1: seed must be a whole number, got ''"),
        ("tau_z", "long", "row 1: tau_z must be a number, got 'long'"),
        ("success", "true", "row 1: success must be True or False, got 'true'"),
        ("inside", "1", "row 1: inside must be True or False, got '1'"),
    ],
)
def test_a_cell_that_does_not_fit_is_named(column: str, cell: str, said: str) -> None:
    text = to_csv(to_frame([a_run("main", "runtime", 5.0, -50.0)], RUNS))
    cells = text_frame(text).row(0, named=True) | {column: cell}
    with pytest.raises(ValueError, match=said):
        from_csv(f"{','.join(cells)}\n{','.join(cells.values())}\n", RUNS)
