"""Studies as they are declared."""

from pathlib import Path

import pytest
from small_studies import SMALL, small_study

from incrt.config import format_seeds, parse_seeds
from incrt.config.earlier import read_settings
from incrt.config.heads import ENCODERS
from incrt.studies.assignments import split
from incrt.studies.store import Store
from incrt.studies.study import Cell, declared_studies, load_study

PRESETS = ("memory", "paper")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", sorted(declared_studies()))
def test_every_study_of_the_library_can_be_built_and_its_cells_differ(name: str, preset: str) -> None:
    study = load_study(name, preset)
    assert len({cell.key for cell in study.cells}) == len(study.cells)
    assert {*study.compare, *study.compare.values()} <= set(study.variants)


@pytest.mark.parametrize("preset", PRESETS)
def test_main_is_the_paper_s_campaign(preset: str) -> None:
    study = load_study("main", preset)
    assert study.seeds == tuple(range(42, 52))
    tasks = [cell.config.task for cell in study.cells]
    assert [(task.tau_z, task.window) for task in tasks] == [(1.0, 20), (2.0, 50), (5.0, 20)]
    assert all(cell.config.sac.steps == 50_000 and cell.config.encoder.k_max == 8 for cell in study.cells)


def test_ablations_vary_what_they_say() -> None:
    def fields(name: str, part: str, field: str) -> list[object]:
        cells = load_study(name, "paper").cells
        assert {cell.config.task.tau_z for cell in cells} == {2.0}
        return [getattr(getattr(cell.config, part), field) for cell in cells]

    assert fields("k_max", "encoder", "k_max") == [2, 4, 8, 16]
    assert fields("grace", "heads", "grace") == [1000, 2000, 5000]
    runs = [cell.config for cell in load_study("static", "paper").cells]
    static = [run for run in runs if run.encoder.encoder == "static"]
    assert {(run.encoder.heads_at_start, run.encoder.d_model) for run in static} == {(2, 128), (7, 128), (8, 128)}
    assert {run.task.tau_z for run in static} == {1.0, 2.0, 5.0}
    assert {cell.config.heads.optimiser for cell in load_study("optimiser", "paper").cells} == {"rebuild", "carry"}
    encoders = {cell.config.encoder.encoder for cell in load_study("encoders", "paper").cells}
    assert encoders == {"runtime", "static", "deep", "gru", "lstm", "none"}


def test_sensitivity_changes_one_setting_at_a_time() -> None:
    study = load_study("sensitivity", "memory")
    usual, *others = [cell.config.heads for cell in study.cells]
    before = usual.to_json()
    changed = [[name for name, value in each.to_json().items() if value != before[name]] for each in others]
    assert all(len(names) == 1 for names in changed)
    settings = {"eps_grow", "eps_prune", "delta_grow", "delta_prune", "check_every", "alpha", "tokens"}
    assert {names[0] for names in changed} == settings


def test_studies_that_name_the_same_run_share_it() -> None:
    def keys(name: str) -> set[str]:
        return {cell.key for cell in load_study(name, "memory").cells}

    assert keys("main") <= keys("static")
    assert keys("robustness") <= keys("main") | keys("static")
    assert keys("main") < keys("hundred") < keys("static")
    assert len(keys("k_max") & keys("main")) == 1
    assert len(keys("grace") & keys("k_max")) == 1
    assert not keys("main") & {cell.key for cell in load_study("main", "paper").cells}


@pytest.mark.parametrize(("preset", "setting"), [("paper", "raw, no norm"), ("memory", "scaled, norm")])
def test_factors_have_each_preset_s_own_runs_among_them(preset: str, setting: str) -> None:
    cells = {cell.variant: cell for cell in load_study("factors", preset).cells}
    own = {cell.variant: cell.key for cell in load_study("static", preset).cells if cell.config.task.tau_z == 5.0}
    assert cells[f"runtime, {setting}"].key == own["runtime"]
    assert cells[f"static, {setting}"].key == own["static K=8"]
    factors = {
        (run.task.reward_error, run.task.reward_velocity, run.encoder.layer_norm, run.encoder.encoder)
        for run in (cell.config for cell in cells.values())
    }
    rewards = ((1.0, 2e-4), (1 / 0.13**2, 0.01))
    assert factors == {(*each, norm, name) for each in rewards for norm in (False, True) for name in ENCODERS[:2]}


@pytest.mark.parametrize("preset", PRESETS)
def test_search_changes_one_setting_at_a_time_of_three_variants(preset: str) -> None:
    study = load_study("search", preset)
    usual = {cell.variant: cell.config.to_json() for cell in study.cells[:3]}
    changed: dict[str, list[dict[str, object]]] = {}
    for cell in study.cells:
        name, _, setting = cell.variant.partition(", ")
        before, after = (
            {field: value for part in settings.values() for field, value in part.items()}
            for settings in (usual[name], cell.config.to_json())
        )
        changes = {field: value for field, value in after.items() if value != before[field]}
        changed.setdefault(setting, []).append(changes)
        other = f"runtime, {setting}" if setting else "runtime"
        assert study.compare.get(cell.variant) == (None if name == "runtime" else other)
    assert changed == {
        "": [{}] * 3,
        "eta 16": [{"eta_max": [16.0, 11.0]}] * 3,
        "W 50": [{"window": 50}] * 3,
        "lr 1e-4": [{"learning_rate": 1e-4}] * 3,
        "lr 1e-3": [{"learning_rate": 1e-3}] * 3,
        "20k steps": [{"steps": 20_000}] * 3,
        "100k steps": [{"steps": 100_000}] * 3,
    }
    keys = {cell.variant: cell.key for cell in load_study("static", preset).cells if cell.config.task.tau_z == 5.0}
    assert [cell.key for cell in study.cells[:2]] == [keys["runtime"], keys["static K=7"]]
    assert (study.cells[2].config.encoder.encoder, study.cells[2].config.encoder.k_max) == ("runtime", 2)


def test_runs_of_one_length_are_trained_together(tmp_path: Path) -> None:
    store, study = Store(tmp_path), load_study("search", "memory")
    assignments = split(store, study, store.planned(study), 128, "gpu", None)
    lengths = [({run.cell.config.sac.steps for run in each.runs}, len(each.runs)) for each in assignments]
    assert lengths == [({50_000}, 75), ({50_000}, 75), ({20_000}, 30), ({100_000}, 30)]


def test_a_part_is_some_variants_in_some_regimes() -> None:
    study = load_study("encoders", "memory")
    assert study.part((), ()) == study.cells
    assert [(cell.variant, cell.config.task.tau_z) for cell in study.part(("none", "deep"), (5.0, 1.0))] == [
        ("deep", 1.0),
        ("deep", 5.0),
        ("none", 1.0),
        ("none", 5.0),
    ]
    with pytest.raises(ValueError, match=r"variants must be among 'runtime', .*'none'; got 'deeper'"):
        study.part(("deep", "deeper"), ())
    with pytest.raises(ValueError, match=r"tau_z must be among 1, 2, 5; got 3, 0\.5"):
        study.part((), (3.0, 2.0, 0.5))


def test_variants_are_compared_with_one_or_each_with_its_own(tmp_path: Path) -> None:
    assert small_study(tmp_path).compare == {"all heads": "grown"}
    assert small_study(tmp_path, SMALL.replace('compare = "grown"', "")).compare == {}
    turned = SMALL.replace('"grown"', '{ grown = "all heads" }')
    assert small_study(tmp_path, turned).compare == {"grown": "all heads"}


def test_a_hundred_seeds_begin_with_the_paper_s() -> None:
    assert load_study("hundred", "paper").seeds == tuple(range(42, 142))


def test_the_paper_s_number_of_heads_is_that_of_study_static() -> None:
    (cell,) = load_study("seven", "paper").cells
    assert cell.key in {each.key for each in load_study("static", "paper").cells}
    assert cell.config.task.tau_z == 5


def test_what_is_followed_up_is_a_pair_of_study_factors() -> None:
    followed, factors = load_study("no_norm", "memory"), load_study("factors", "memory")
    pair = {cell.key for cell in factors.cells if cell.variant.endswith(", scaled, no norm")}
    assert {cell.key for cell in followed.cells} == pair
    assert len(pair) == 2


def test_stopping_early_changes_nothing_else_of_study_hundred() -> None:
    early, usual = (
        {cell.variant: cell for cell in load_study(name, "paper").cells if cell.config.task.tau_z == 5}
        for name in ("early", "hundred")
    )
    assert {cell.config.sac.steps for cell in early.values()} == {40_000}
    longer = {name: Cell(name, cell.config.replace(sac={"steps": 50_000})) for name, cell in early.items()}
    assert longer == usual


def test_any_seeds_will_do() -> None:
    assert len(load_study("main", "memory", parse_seeds("0-99")).seeds) == 100


@pytest.mark.parametrize("seeds", [[42], [42, 43, 44], [1, 5, 7, 8, 9], [3, 2, 1]])
def test_seeds_are_written_as_they_are_read(seeds: list[int]) -> None:
    assert parse_seeds(format_seeds(seeds)) == sorted(seeds)


def test_a_cell_is_what_its_settings_say(tmp_path: Path) -> None:
    for cell in small_study(tmp_path).cells:
        assert Cell(cell.variant, read_settings(cell.config.to_json())) == cell


@pytest.mark.parametrize(
    ("line", "instead", "named"),
    [
        ("seeds", 'seed = "1"', "unknown key seed; accepted: about, seeds, regimes"),
        ("seeds", 'seeds = "one"', "seeds must be numbers and ranges"),
        ("seeds", "seeds = 3", "seeds must be a text"),
        ("about", "", "about must be given"),
        ("compare", 'compare = "nobody"', "compare must be one of the variants 'grown', 'all heads'"),
        (
            "compare",
            'compare = { grown = "nobody" }',
            "'all heads', or a table from one of them to another; got 'nobody'",
        ),
        ("compare", 'compare = { nobody = "grown" }', "or a table from one of them to another; got 'nobody'"),
        ("compare", "compare = { grown = 3 }", "or a table from one of them to another; got 3"),
        ("compare", 'compare = { grown = "grown" }', "compare must name another variant for 'grown' than itself"),
        ("compare", "compare = 3", "compare must be a text or a table of texts, got 3"),
        ("regimes", "regimes = []", "at least one entry"),
        ("regimes", "regimes = [{ window = 5 }]", "a regime must have tau_z"),
        ("regimes", "regimes = [{ tau_z = 5 }, { tau_z = 5, window = 9 }]", "regimes must differ in tau_z"),
        ("regimes", "regimes = [{ tau_z = -1 }]", "regime {'tau_z': -1}: tau_z must be a number > 0"),
        ("task =", "task = { tau_z = 2 }", "common must leave task.tau_z to regimes"),
        ("grown", "grown.task.tau_z = 2", "variant 'grown' must leave task.tau_z to regimes"),
        ("encoder =", "encoder = { k_mox = 3 }", "common: unknown field k_mox; accepted"),
        ("grown", "grown.encoder.k_max = -3", "variant 'grown': k_max must be"),
        ("grown", "grown.encoder.k_mox = 3", "variant 'grown': unknown field k_mox; accepted"),
        ("grown", "grown.decoder.k = 3", "unknown part decoder; accepted: task, encoder, heads, sac"),
        ("grown", "grown = 3", "must hold tables of fields"),
        ('"payload 1 kg"', '"payload 1 kg".eval_payload = 1', "condition 'payload 1 kg': unknown field eval_payload"),
        ('"payload 1 kg"', '"payload 1 kg" = {}', "must name at least one field of the task"),
        ('"payload 1 kg"', '"".eval_payloads = [1.0]', "names that can be printed on one line, got ''"),
        ("grown", 'grown.encoder.encoder = "static"', "variants 'grown' and 'all heads' are the same runs"),
        ("compare", "trained_by = [1]", "trained_by must name studies, such as early, encoders"),
        ('"payload 1 kg"', '"payload 1 kg".window = 9', "window cannot change after training"),
        ("grown", '"a\\nb" = {}', "names that can be printed on one line"),
        ("compare", 'trained_by = ["mian"]', "such as early, encoders"),
        ("seeds", 'seeds = "99999999999"', "seeds must be at most 1e+09"),
        ("about", 'about = "unclosed', "cannot be read"),
        (
            "grown",
            "grown.sac.buffer = 34",
            "variant 'grown': buffer must be at least 35, for a window of 5 and the tokens of the rank; got 34",
        ),
        ("sac =", "sac = { buffer = 6 }", "common: buffer must be at least 35"),
        (
            '"all heads"',
            '"all heads" = { encoder.encoder = "static", sac.buffer = 6 }',
            "variant 'all heads': buffer must be at least 7, for a window of 5 and two transitions; got 6",
        ),
        (
            "grown",
            "grown.sac.learning_starts = 140",
            "variant 'grown': steps must be more than learning_starts = 140, until when nothing is learned; got 140",
        ),
        (
            "grown",
            'grown.encoder = { encoder = "gru", k_init = 2 }',
            "k_init goes with encoder runtime or static, not with",
        ),
        ("seeds", "seeds = [1, 2]", 'seeds must be a text such as "42-51", got [1, 2]'),
        ("grown", "grown.heads.k_min = 2", "variant 'grown': 1 heads are active, but k_min = 2"),
        (
            '"payload 1 kg"',
            "other = { robot = 'own.py:Arm', friction = 'own.py:Loss', eta_max = [1.0], shield_friction = [1.0] }",
            "condition 'other': observation_dim would be 7, trained policies have 11",
        ),
        ("task =", "task.window = 7", "window must be given by common or by regimes, not by both"),
    ],
)
def test_a_bad_study_is_refused_by_name(tmp_path: Path, line: str, instead: str, named: str) -> None:
    lines = [instead if each.startswith(line) else each for each in SMALL.splitlines()]
    with pytest.raises(ValueError, match=r"study .*small\.toml: ") as error:
        small_study(tmp_path, "\n".join(lines))
    assert named in str(error.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match=r"there is no file no/such/file\.toml"):
        load_study("no/such/file.toml", "memory")


@pytest.mark.parametrize("name", ["nothing", "../study", ""])
def test_an_unknown_study_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(ValueError, match=r"there is no study .*accepted: early, encoders, factors, grace, hundred"):
        load_study(name, "memory")


def test_a_study_of_the_user_s_may_not_pass_for_the_paper_s(tmp_path: Path) -> None:
    (tmp_path / "main.toml").write_text(SMALL)
    with pytest.raises(ValueError, match="the library has a study main of its own; give the file another name"):
        load_study(str(tmp_path / "main.toml"), "memory")
