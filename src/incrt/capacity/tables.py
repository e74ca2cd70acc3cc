"""The table of a capacity study: one row a number of channels and variant."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from incrt.capacity.outcomes import Outcome
from incrt.capacity.survival import logrank, median_steps, ratio_of_medians


def table_rows(outcomes: Sequence[Outcome], compare: str | None) -> list[dict[str, Any]]:
    """What the runs of each variant came to, beside the variant that they are compared with."""
    cells: dict[tuple[int, str], list[Outcome]] = {}
    for each in outcomes:
        cells.setdefault((each.channels, each.variant), []).append(each)
    return [_row(cells, channels, variant, compare) for channels, variant in cells]


def _row(
    cells: Mapping[tuple[int, str], Sequence[Outcome]], channels: int, variant: str, compare: str | None
) -> dict[str, Any]:
    runs = cells[channels, variant]
    errors = [each.final_error for each in runs if each.final_error is not None]
    median = median_steps(runs)
    row = {
        "channels": channels,
        "variant": variant,
        "n": len(runs),
        "failed": sum(bool(each.failure) for each in runs),
        "solved": sum(each.solved_at is not None for each in runs),
        "median_steps": None if median == float("inf") else median,
        "error": fmean(errors) if errors else None,
        "largest_error": max(errors, default=None),
        "k": ", ".join(map(str, sorted({each.k_end for each in runs}))),
        "exactly_d": sum(each.k_end == channels for each in runs),
        "within_one": sum(abs(each.k_end - channels) <= 1 for each in runs),
        "grows": sum(each.grows for each in runs),
        "prunes": sum(each.prunes for each in runs),
        "events": sum(each.grows + each.prunes for each in runs),
        "held": sum(each.held for each in runs),
        "largest_jump": max(each.largest_jump for each in runs),
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
        "logrank_p": None,
    }
    beside = cells.get((channels, compare)) if compare is not None and compare != variant else None
    if beside is not None:
        ratio = ratio_of_medians(runs, beside)
        row |= {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
        row["logrank_p"] = logrank(runs, beside)
    return row
