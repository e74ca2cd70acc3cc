"""``incrt capacity``: how many heads a task needs, how many are found, and how soon it is learned with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape

from incrt.cli.display import Display
from incrt.cli.options import DEVICE
from incrt.cli.terminal import log, new_table, print_json, say_stopping
from incrt.config import parse_seeds
from incrt.config.rules import COUNT
from incrt.engine.training import train, until_signalled
from incrt.storage.cache import keep_compiled
from incrt.storage.json import finite

_SAVE_EVERY = 20_000
"""Steps between two checkpoints: these runs are short and many."""


@dataclass(frozen=True, kw_only=True)
class RunCapacity:
    """Train the runs of a capacity study that are not over yet, and print what all of them came to.

    Stop it at any time: the same command goes on.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]
    """A study that comes with the library (incrt capacity list), or a file of your own that ends in .toml."""
    out: Path
    """Folder for the study's runs; its rows and curves are written into OUT/STUDY as well."""
    channels: tuple[int, ...] | None = None
    """Only these numbers of channels D; the study's if not given."""
    variants: tuple[str, ...] | None = None
    """Only these variants, by their names; all if not given."""
    seeds: str | None = None
    """These seeds for every variant, such as 200-219; each variant's own if not given."""
    device: Annotated[str, DEVICE] = "auto"
    """Where to train; auto takes a GPU if there is one."""
    cores: int | None = None
    """On a CPU, how many runs train at a time; as many as there are cores if not given."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Train, and print the table."""
        from incrt.capacity.outcomes import ROWS, read_outcomes, write_outcomes
        from incrt.capacity.plan import load_study
        from incrt.capacity.tables import table_rows

        if self.cores is not None:
            COUNT("cores", self.cores)
        study = load_study(self.name, None if self.seeds is None else parse_seeds(self.seeds), self.channels)
        if unknown := sorted(set(self.variants or ()) - set(study.variants)):
            raise ValueError(f"variants must be among {', '.join(study.variants)}; got {', '.join(unknown)}")
        plan = [run for run in study.planned(self.out) if run.variant in (self.variants or study.variants)]
        if (self.out / study.name / ROWS).exists():
            read_outcomes(self.out / study.name)  # what cannot be read is said before anything is trained
        keep_compiled()
        with Display([run.folder for run in plan], log, tensorboard=False) as display, until_signalled(say_stopping):
            jobs = [run.job for run in plan]
            progress = train(jobs, self.device, _SAVE_EVERY, display.update, display.warn, cores=self.cores)
        outcomes = write_outcomes(study, plan, self.out / study.name)
        rows = table_rows(outcomes, study.compare)
        if self.json:
            print_json(finite(rows))
        else:
            print_tables(study.name, rows)
        if not all(each.finished for each in progress):
            log.print("stopped; the same command goes on from here")
            raise SystemExit(130)


@dataclass(frozen=True)
class ShowCapacity:
    """Print what the runs of a capacity study came to, and draw it."""

    folder: Annotated[Path, tyro.conf.Positional]
    """The folder of the study, with runs.csv and curves.npz in it: OUT/STUDY of incrt capacity run."""
    compare: str | None = None
    """The variant that the others are compared with; if not given that of the library's study of this name, or none."""
    figures: Path | None = None
    """Also draw K found against D, the runs that have solved the task against steps, and the errors, into here."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the table."""
        from incrt.capacity.figures import draw_all
        from incrt.capacity.outcomes import read_outcomes
        from incrt.capacity.plan import declared_studies
        from incrt.capacity.tables import table_rows

        outcomes, curves = read_outcomes(self.folder)
        known = declared_studies().get(self.folder.name)
        compare = self.compare or (None if known is None else known.compare)
        variants = dict.fromkeys(each.variant for each in outcomes)
        if self.compare is not None and self.compare not in variants:
            raise ValueError(f"--compare must be one of {', '.join(variants)}; got {self.compare}")
        rows = table_rows(outcomes, compare)
        if self.figures is not None:
            draw_all(outcomes, curves, self.figures)
        if self.json:
            print_json(finite(rows))
        else:
            print_tables(self.folder.name, rows)


@dataclass(frozen=True)
class ListCapacity:
    """The capacity studies that come with the library."""

    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print their names and what they are about."""
        from incrt.capacity.plan import declared_studies

        rows = [
            {"study": name, "runs": len(study.planned(Path())), "variants": list(study.variants), "about": study.about}
            for name, study in declared_studies().items()
        ]
        if self.json:
            print_json(rows)
            return
        table = new_table("Capacity studies", ("study", "runs"))
        table.columns[0].justify = "left"
        table.add_column("about")
        for row in rows:
            table.add_row(str(row["study"]), str(row["runs"]), str(row["about"]))
        Console().print(table)


def print_tables(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """The rows for people: how soon the task is solved, and with how many heads."""
    caption = (
        "steps: median until the task is solved; times: that over the steps of the variant that is compared with, with "
        "a 95 % bootstrap interval; p: log-rank; error: squared, a channel, at the end"
    )
    soon = new_table(f"{title}: how soon", ("D", "variant", "solved", "steps", "times", "p", "error"), caption)
    caption = (
        "K: at the end; K = D and +-1: runs that end with D heads, or at most one more or less; held: events whose "
        "certificate holds; jump: the policy's largest at a prune"
    )
    headings = ("D", "variant", "K", "K = D", "+-1", "grown", "pruned", "held", "jump")
    heads = new_table(f"{title}: how many heads", headings, caption)
    for table in (soon, heads):
        table.columns[1].justify = "left"
    for row in rows:
        about = (str(row["channels"]), escape(row["variant"]))
        steps = "never" if row["median_steps"] is None else f"{row['median_steps']:.0f}"
        p = "" if row["logrank_p"] is None else f"{row['logrank_p']:.1g}"
        error = "" if row["error"] is None else f"{row['error']:.4f}"
        failed = f", {row['failed']} failed" if row["failed"] else ""
        soon.add_row(*about, f"{row['solved']}/{row['n']}{failed}", steps, _times(row), p, error)
        jump = f"{row['largest_jump']:.3f}" if row["prunes"] else ""
        counts = [str(row[name]) for name in ("exactly_d", "within_one", "grows", "prunes")]
        heads.add_row(*about, row["k"], *counts, f"{row['held']}/{row['events']}", jump)
    if not rows:
        log.print("no run is over yet")
        return
    console = Console()
    console.print(soon)
    console.print(heads)


def _times(row: dict[str, Any]) -> str:
    """A ratio of medians; infinite ones are those of variants of which fewer than half solve the task."""
    if row["ratio_low"] is None:
        return ""
    return f"{row['ratio']:.2f} [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]"


@dataclass(frozen=True)
class CapacityCommand:
    """Capacity studies: heads needed, heads found, and steps until a task is learned."""

    command: Annotated[
        Annotated[RunCapacity, tyro.conf.subcommand("run")]
        | Annotated[ShowCapacity, tyro.conf.subcommand("show")]
        | Annotated[ListCapacity, tyro.conf.subcommand("list")],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> None:
        """Run the one that was named."""
        self.command.run()
