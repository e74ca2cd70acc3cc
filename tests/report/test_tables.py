"""Tables: their three forms read back, what stands in which cell, and that nothing is counted twice or dropped."""

import csv
import dataclasses
import io
import re

import pytest
from made_up import WINDOWS, a_run, around, but, dataset_of, sample

from incrt.report.data import Dataset
from incrt.report.page import counts
from incrt.report.schema import COMMANDS, to_frame
from incrt.report.selection import Runs
from incrt.report.tables import make_tables
from incrt.report.tables.table import Row, Table, escape_latex, to_csv, to_latex, to_markdown
from incrt.report.wording import number
from incrt.storage.records import Command

MINUS = "\N{MINUS SIGN}"
STATICS = ("static K=2 (phase 1)", "static K=7", "static K=8")


@pytest.fixture(scope="module")
def everything() -> Dataset:
    """All the studies of the paper, and one with conditions."""
    grown = [sample("main", "runtime", tau_z, around(-50, 10)) for tau_z in WINDOWS]
    return dataset_of(
        *grown,
        *([but(each, study="static") for each in runs] for runs in grown),  # the same runs
        *(sample("static", name, tau_z, around(-40, 10), encoder="static") for name in STATICS for tau_z in WINDOWS),
        *(sample("k_max", f"K_max {k}", 2.0, around(-45 - k / 10, 8), heads=k) for k in (2, 4, 8, 16)),
        *(
            sample("grace", f"grace {grace}", 2.0, around(-45, 8), saturated_at=1500 + 6 * (grace + 1000))
            for grace in (1000, 2000, 5000)
        ),
        sample("robustness", "runtime", 2.0, around(-30, 5), condition="payload 3 kg"),
        compare="runtime",
    )


def table(made_of: Dataset, name: str) -> Table:
    return next(each for each in make_tables(Runs(made_of, "paper")) if each.name == name)


def cells(found: Table, **where: object) -> list[dict[str, str | None]]:
    """The rows about this, by heading; minus signs as one types them."""
    rows = [row for row in found.rows if all(getattr(row, key) == value for key, value in where.items())]
    cells = [{name: row.cells.get(name) for name in found.headings} for row in rows]
    return [{name: cell and cell.replace(MINUS, "-") for name, cell in each.items()} for each in cells]


def test_every_study_has_its_table_and_the_paper_has_three(everything: Dataset) -> None:
    names = [each.name for each in make_tables(Runs(everything, "paper"))]
    studies = ["study-main", "study-static", "study-k_max", "study-grace", "study-robustness"]
    assert names == ["table-1", "table-2", "table-3", *studies, "certificates"]
    assert make_tables(Runs(everything, "memory")) == []
    assert MINUS in (table(everything, "table-2").rows[0].cells["Δ% ± CI95"] or "")
    assert [each.name for each in make_tables(Runs(dataset_of(), "paper"))] == []


def test_csv_reads_back(everything: Dataset) -> None:
    for each in make_tables(Runs(everything, "paper")):
        lines = list(csv.reader(io.StringIO(to_csv(each))))
        assert lines[0] == list(each.headings)
        assert lines[1:] == [[cell or "" for cell in row.values()] for row in cells(each)]
    medians = [
        float(line["median"])
        for line in csv.DictReader(io.StringIO(to_csv(table(everything, "study-main"))))
        if line["median"]
    ]
    assert medians == [-50.0] * 3


def test_markdown_has_as_many_columns_in_every_line(everything: Dataset) -> None:
    for each in make_tables(Runs(everything, "paper")):
        lines = [line for line in to_markdown(each).splitlines() if line.startswith("|")]
        assert len(lines) == 2 + len(each.rows)
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(each.headings) + 1}
    odd = Table("odd", "Odd", ("a|b", "c"), (Row({"a|b": "x | y"}, "paper"),))
    assert to_markdown(odd).splitlines()[2:] == [r"| a\|b | c |", "| ---: | ---: |", "| x \\| y | \N{EN DASH} |"]


def test_latex_is_balanced_and_escaped(everything: Dataset) -> None:
    for each in make_tables(Runs(everything, "paper")):
        text = to_latex(each)
        assert re.findall(r"\\begin{(\w+)}", text) == ["table", "tabular"]
        assert re.findall(r"\\end{(\w+)}", text) == ["tabular", "table"]
        assert text.count("{") == text.count("}")
        assert text.isascii()
        comment, *_ = text.splitlines()
        assert comment.startswith("%")
        plain = re.sub(r"(?<!\\)\$[^$]*\$", "", text.removeprefix(comment).replace("{!}{%", "{!}{"))
        assert not re.search(r"(?<!\\)[%_#$^~]", plain)
        body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(lines) == 1 + len(each.rows)
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(each.headings) - 1}


def test_what_latex_would_read_otherwise() -> None:
    assert escape_latex("τ_z & K_max: Δ% ± 5 % < a_b") == (r"$\tau_z$ \& $K_{\max}$: $\Delta\%$ $\pm$ 5 \% $<$ a\_b")
    assert escape_latex("\\{x}~^#$") == r"\textbackslash{}\{x\}\textasciitilde{}\textasciicircum{}\#\$"
    assert escape_latex("\N{MINUS SIGN}3 Δ τ") == r"$-$3 $\Delta$ $\tau$"


def test_a_zero_has_no_sign() -> None:
    assert (number(-0.004), number(-0.006), number(None)) == ("0.00", f"{MINUS}0.01", None)


def test_table_1_sets_runtime_against_each_static_and_the_paper(everything: Dataset) -> None:
    found = table(everything, "table-1")
    assert [row.variant for row in found.rows[:4]] == ["runtime", "static K=7", "static K=2 (phase 1)", "static K=8"]
    (row,) = cells(found, tau_z=2.0, variant="runtime")
    assert (row["Δ% ± CI95"], row["success"]) == ("-50.00 ± 7.15", "10/10 [72, 100] %")
    assert (row["paper: Δ% ± CI95"], row["paper: success"]) == ("-50.85 ± 8.38", "10/10")
    assert row["runtime less it [points]"] is row["paper: runtime less it"] is None
    (row,) = cells(found, tau_z=2.0, variant="static K=7")
    assert row["Δ% ± CI95"] == "-40.00 ± 7.15"
    assert row["runtime less it [points]"] == "-10.00 [-19.40, -0.60]"
    assert (row["paper: Δ% ± CI95"], row["paper: runtime less it"]) == ("-35.00", "-15.8")
    (row,) = cells(found, tau_z=5.0, variant="static K=7")
    assert row["paper: success"] == "6/10"
    best = next(row for row in cells(found, tau_z=5.0, variant=None) if row["variant"] == "best constant")
    assert best["runtime less it [points]"] == "-16.00 [-23.15, -8.85]"


def test_table_1_takes_runtime_from_elsewhere_only_if_it_was_trained_as_long() -> None:
    short = sample("quick", "runtime", 5.0, around(-10, 1), steps=8000)
    fixed = sample("static", "static K=7", 5.0, around(-40, 1))
    long = sample("static", "runtime", 5.0, around(-45, 1))
    (row,) = cells(table(dataset_of(short, fixed), "table-1"), variant="runtime")
    assert row["Δ% ± CI95"] is None
    (row,) = cells(table(dataset_of(short, fixed, long), "table-1"), variant="runtime")
    assert row["Δ% ± CI95"] == "-45.00 ± 0.72"
    assert all(each.name != "table-1" for each in make_tables(Runs(dataset_of(short), "paper")))


def test_tables_2_and_3(everything: Dataset) -> None:
    caps = table(everything, "table-2")
    assert [row.variant for row in caps.rows] == [
        "K_max 2",
        "K_max 4",
        "K_max 8",
        "K_max 16",
        "static K=7",
        *[None] * 4,
    ]
    (cap,) = cells(caps, variant="K_max 16")
    assert (cap["std"], cap["n"], cap["paper: Δ% ± CI95"], cap["paper: n"]) == ("8.00", "10", "-43.82 ± 12.78", "5")
    (fixed,) = cells(caps, variant="static K=7")
    assert (fixed["Δ% ± CI95"], fixed["paper: Δ% ± CI95"]) == ("-40.00 ± 7.15", "-35.00")
    cooldowns = cells(table(everything, "table-3"))[:3]
    assert [row["schedule [k]"] for row in cooldowns] == ["13.5", "19.5", "37.5"]
    assert [row["paper: schedule [k]"] for row in cooldowns] == ["13.5", "19.5", "37.5"]
    assert [row["paper: fails"] for row in cooldowns] == ["1/5", "0/5", "1/5"]


def test_a_run_that_does_not_reach_the_cap_has_its_last_growth_as_schedule() -> None:
    late = [a_run("grace", "grace 5000", 2.0, -40, saturated_at=None, last_grow=31_500) for _ in range(2)]
    (row,) = cells(table(dataset_of(late), "table-3"), variant="grace 5000")
    assert row["schedule [k]"] == "31.5"


def test_reference_controllers_stand_in_every_table_of_results(everything: Dataset) -> None:
    for each in make_tables(Runs(everything, "paper"))[:-1]:
        regimes = {row.tau_z for row in each.rows}
        for tau_z in regimes:
            names = [row["variant"] for row in cells(each, tau_z=tau_z, variant=None)]
            assert names == ["baseline", "best constant", "feedforward", "clairvoyant"]
    (clairvoyant,) = [row for row in cells(table(everything, "study-k_max")) if row["variant"] == "clairvoyant"]
    assert (clairvoyant["Δ% ± CI95"], clairvoyant["success"], clairvoyant["headroom closed"]) == (
        "-60.00",
        "yes",
        "1.00",
    )


def test_diverged_and_failed_runs_are_counted_and_shown() -> None:
    runs = sample("main", "runtime", 5.0, [-50.0, -40.0, None, -10.0])
    runs.append(a_run("main", "runtime", 5.0, -60.0, failure="the loss is not finite", success=False))
    (row,) = cells(table(dataset_of(runs), "study-main"), variant="runtime")
    assert (row["n"], row["diverged"], row["success"]) == ("5", "2", "2/5 [12, 77] %")
    assert row["median"] == "-40.00"  # of -50, -40 and -10
    lost = [a_run("main", "runtime", 5.0, None)]
    (row,) = cells(table(dataset_of(lost), "study-main"), variant="runtime")
    assert (row["n"], row["diverged"], row["Δ% ± CI95"], row["K at the end"]) == ("1", "1", None, None)


def test_a_run_is_counted_once_in_a_cell() -> None:
    run = a_run("main", "runtime", 5.0, -50.0)
    found = dataset_of(
        [
            run,
            but(run),
            but(run, study="static"),
            a_run("main", "runtime", 5.0, -40.0),
        ]
    )
    (row,) = cells(table(found, "study-main"), variant="runtime")
    assert (row["n"], row["median"]) == ("2", "-45.00")
    assert cells(table(found, "certificates"))[0]["growths"] == "14"


def test_a_condition_has_its_own_rows() -> None:
    usual = sample("robustness", "runtime", 2.0, around(-50, 5))
    heavy = [but(each, condition="payload 3 kg", delta_pct=-20.0) for each in usual]
    found = table(dataset_of(usual, heavy), "study-robustness")
    rows = {row["condition"]: row for row in cells(found, variant="runtime")}
    assert {name: (row["n"], row["median"]) for name, row in rows.items()} == {
        "": ("10", "-50.00"),
        "payload 3 kg": ("10", "-20.00"),
    }
    assert [row["condition"] for row in cells(found, variant=None)] == [""] * 4 + ["payload 3 kg"] * 4


def test_comparison_is_with_the_variant_of_the_same_regime() -> None:
    runs = [
        *sample("static", "runtime", 1.0, [0.0, 1.0, 3.0]),
        *sample("static", "static K=7", 1.0, [2.0, 4.0, 5.0]),
        *sample("static", "runtime", 2.0, [100.0, 101.0, 102.0]),
    ]
    found = table(dataset_of(runs, compare="runtime"), "study-static")
    (row,) = cells(found, variant="static K=7")
    assert row["p (Mann-Whitney)"] == "0.200"
    assert row["Cohen's d"] == "1.53"  # 7/3 over sqrt(7/3)
    assert all(row["Cohen's d"] is None for row in cells(found, variant="runtime"))


def test_each_variant_may_be_compared_with_its_own() -> None:
    runs = {"a": [0.0, 1.0, 3.0], "b": [2.0, 4.0, 5.0], "c": [1.0, 2.0, 4.0], "d": [9.0, 9.5, 9.9]}
    samples = [sample("own", name, 1.0, deltas) for name, deltas in runs.items()]
    found = table(dataset_of(*samples, compare={"b": "a", "d": "c"}), "study-own")
    rows = {row["variant"]: row for row in cells(found)}
    differences = {name: (rows[name]["compared with"], rows[name]["difference [Welch95]"]) for name in runs}
    assert [differences[name] for name in "ac"] == [(None, None)] * 2
    assert [(other, (text or "").split()[0]) for other, text in (differences["b"], differences["d"])] == [
        *(("a", "2.33"), ("c", "7.13"))
    ]
    assert "are against the variant named beside them in the same regime" in " ".join(found.notes)
    one = table(dataset_of(*samples, compare={"b": "a", "d": "a"}), "study-own")
    assert "compared with" not in one.headings
    assert "are against a in the same regime" in " ".join(one.notes)


def test_heads_are_one_number_or_a_range() -> None:
    runs = [a_run("k_max", "K_max 16", 2.0, -40, heads=heads) for heads in (16, 13, 16)]
    without = sample("k_max", "none", 2.0, [-30.0, -31.0], heads=0)
    found = table(dataset_of(runs, without), "study-k_max")
    assert [row["K at the end"] for row in cells(found)[:2]] == ["15.0 (13 to 16)", None]


def test_certificates() -> None:
    pruned = a_run(
        "main",
        "runtime",
        2.0,
        -50,
        prunes=2,
        certificates_held=8,
        largest_prune_jump=0.25,
        largest_grow_jump=1e-9,
        inside=False,
    )
    static = sample(
        "static", "static K=7", 2.0, [-40.0], grows=0, certificates_held=0, largest_grow_jump=None, inside=None
    )
    main, fixed = cells(table(dataset_of([pruned], sample("main", "runtime", 2.0, [-50.0]), static), "certificates"))
    assert list(main.values()) == ["main", "2", "16", "14", "2", "15", "1", "1e-09", "0.25", "1/2"]
    assert list(fixed.values()) == ["static", "1", "0", "0", "0", "0", "0", None, None, None]


def test_runs_that_are_missing_are_named() -> None:
    made = dataset_of(sample("main", "runtime", 5.0, [-50.0]))
    study = dataclasses.replace(made.studies[0], runs_wanted=3, failed=(("main/run-2", "the disk is full"),))
    notes = " ".join(table(dataclasses.replace(made, studies=[study]), "study-main").notes)
    assert "1 of 3 runs are there." in notes
    study = dataclasses.replace(study, variants=("runtime", "deep", "lstm"))
    notes = " ".join(table(dataclasses.replace(made, studies=[study]), "study-main").notes)
    assert "1 of 3 runs are there, none of 'deep' and 'lstm'." in notes
    assert "main/run-2: the disk is full" in notes


def test_times_stand_beside_those_of_the_paper() -> None:
    found = dataset_of(sample("main", "runtime", 2.0, [-50.0]), sample("search", "runtime", 2.0, [-50.0]))
    steps = {"main": (50_000,), "search": (50_000, 20_000)}
    studies = [
        dataclasses.replace(
            each, configuration={f"{steps} steps": {"sac": {"steps": steps}} for steps in steps[each.name]}
        )
        for each in found.studies
    ]
    ran = Command("main", "paper", "42-51", 128, "2026-01-01 12:00 UTC", 200.0, 30, 60.0, 90.5, 43.25)
    tested, other = dataclasses.replace(ran, runs=0, train_s=0.0), dataclasses.replace(ran, preset="memory")
    ran_part = dataclasses.replace(ran, study="search", part="runtime; tau_z 2")
    commands = to_frame(map(vars, (ran, tested, ran_part, other)), COMMANDS)
    first, *rest = cells(table(dataclasses.replace(found, studies=studies, commands=commands), "times"))
    assert (first["study"], first["runs trained"], first["training [s]"]) == ("main", "30", "60.0")
    # 30 runs of 20 to 27 minutes are 36 000 to 48 600 seconds.
    assert first["paper: wall [A100 h]"] == "10.0 to 13.5"
    assert (first["training: times as fast"], first["wall: times as fast"]) == ("600 to 810", "180 to 243")
    assert [each["wall: times as fast"] for each in rest] == [None, None]
    assert [each["part"] for each in (first, *rest)] == [None, None, "runtime; tau_z 2"]


@pytest.mark.parametrize(("failure", "kept", "incomplete"), [(None, 9, 1), ("the loss is not finite", 10, 0)])
def test_a_study_lacks_the_runs_that_are_not_there_and_not_those_that_failed(
    failure: str | None, kept: int, incomplete: int
) -> None:
    first, *others = sample("main", "runtime", 2.0, around(-50, 10))
    made = dataset_of([but(first, failure=failure), *others])
    assert counts(dataclasses.replace(made, runs=made.runs.tail(kept)))["of them incomplete"] == incomplete
