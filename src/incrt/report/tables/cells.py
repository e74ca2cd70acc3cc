"""What the tables of results have in common: what is said of runs of one cell, and of a controller beside them."""

from collections.abc import Sequence

import polars as pl

from incrt.config import SUCCESS_RMSE
from incrt.report import schema
from incrt.report.selection import SOUND, Runs, deltas, diverged, mean_of, total
from incrt.report.statistics import rate, summarise
from incrt.report.tables.table import Row
from incrt.report.wording import interval_text, mean_text, number, rate_text

ABOUT_DELTA = (
    "Δ% is the change of the RMSE against the baseline; ± is half the 95 % Student interval over the seeds. "
    "Diverged runs are those whose training stopped early or whose arm was lost (RMSE not below 1 rad): they have not "
    "succeeded, and have no part in means, spreads and comparisons."
)

Cells = dict[str, str | None]


def variant_cells(variant: str, tau_z: float, found: pl.DataFrame) -> Cells:
    """What there is to say of the runs of a variant in a regime; tables show what they have a column for."""
    about = {"variant": variant, "τ_z [s]": f"{tau_z:g}"}
    if not len(found):
        return {**about, "n": "0", "diverged": "0"}
    summary, sound, succeeded = summarise(deltas(found)), found.filter(SOUND), total(found, "success")
    ends = mean_of(sound.select(pl.coalesce("saturated_at", "last_grow")).to_series())
    return {
        **about,
        "n": str(len(found)),
        "diverged": str(diverged(found)),
        "success": rate_text(rate(succeeded, len(found))),
        "fails": f"{len(found) - succeeded}/{len(found)}",
        "Δ% ± CI95": mean_text(summary),
        "std": number(summary.std),
        "median": number(summary.median),
        "IQM [BCa95]": interval_text(summary.iqm, summary.iqm_low, summary.iqm_high),
        "headroom closed": number(mean_of(sound["headroom_closed"])),
        "torque TV [N m]": number(mean_of(sound["torque_tv"]), 0),
        "K at the end": _heads_text(sound["heads"].to_list()),
        "schedule [k]": number(None if ends is None else ends / 1000, 1),
    }


def _heads_text(heads: Sequence[int]) -> str | None:
    """One number if all have it, else the mean and the range; nothing for an encoder without heads."""
    if not any(heads):
        return None
    low, high = min(heads), max(heads)
    return str(low) if low == high else f"{number(mean_of(heads), 1)} ({low} to {high})"


def controller_cells(row: schema.Row) -> Cells:
    """What there is to say of a reference controller."""
    succeeds = row["rmse"] is not None and row["rmse"] < SUCCESS_RMSE
    return {
        "variant": row["controller"].replace("_", " ") + (f" ({row['variant']})" if row["variant"] else ""),
        "τ_z [s]": f"{row['tau_z']:g}",
        "condition": row["condition"],
        "Δ% ± CI95": number(row["delta_pct"]),
        "success": "yes" if succeeds else "no",
        "fails": "no" if succeeds else "yes",
        "diverged": "yes" if row["rmse"] is None else "no",
        "headroom closed": number(row["headroom_closed"]),
        "torque TV [N m]": number(row["torque_tv"], 0),
    }


def controller_rows(runs: Runs, study: str, tau_z: float, condition: str = "") -> list[Row]:
    """The reference controllers of a regime of a study."""
    found = runs.controllers((study,), tau_z, condition)
    return [Row(controller_cells(each), runs.preset, tau_z) for each in found]
