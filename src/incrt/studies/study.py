"""A study: which variants are trained in which regimes with which seeds, and on what else they are tested.

Studies are declared in TOML. Those that come with the library lie in ``declared/``; a user's own is a file of the same
form:

    about = "One sentence."                     # what it is to show
    seeds = "42-51"                             # unless the command says otherwise
    regimes = [{ tau_z = 5, window = 20 }]
    compare = "runtime"                         # optional: the variant that the others are compared with, or a
                                                # table with one for each that is: { "eight heads" = "runtime" }
    [common]                                    # optional: what differs from the preset in all variants
    sac.steps = 20000
    [variants]                                  # and in one: fields of task, encoder, heads and sac
    runtime = {}
    "eight heads".encoder = { encoder = "static", k_init = 8 }
    [conditions]                                # optional: fields of the task that differ in a test after training
    "payload 3 kg".eval_payloads = [3.0]

``trained_by`` names the studies that train the runs of one that only tests them.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrt.config import RunConfig, parse_seeds, preset
from incrt.config.run import PARTS
from incrt.storage.json import checksum

_DECLARED = Path(__file__).parent / "declared"
_KEYS = {
    "about": str,
    "seeds": str,
    "regimes": list,
    "compare": str | dict,
    "trained_by": list,
    "common": dict,
    "variants": dict,
    "conditions": dict,
}
_WORDS = {str: "text", list: "list", dict: "table", str | dict: "text or a table of texts"}
_NEEDED = ("about", "seeds", "regimes", "variants")
_OF_REGIME = ("tau_z", "window")


@dataclass(frozen=True)
class Cell:
    """Runs that differ in their seeds alone."""

    variant: str
    config: RunConfig
    """Of all its runs, but for the seed."""

    @property
    def key(self) -> str:
        """The name of its folder: what it is at a glance, and a digest of all its settings; the variant's name is none.

        Studies that name the same runs share them.
        """
        task = self.config.task
        digest = checksum(self.config.to_json())[:10]
        return f"{self.config.encoder.encoder}-tau{task.tau_z:g}-w{task.window}-{digest}"


@dataclass(frozen=True)
class Study:
    """A study for one preset. Its conditions are by name the fields of the task that differ in a test."""

    name: str
    preset: str
    about: str
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    compare: Mapping[str, str]
    """The variants that are compared with another one, and with which."""
    trained_by: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, Any]]

    @property
    def tests(self) -> dict[str, Mapping[str, Any]]:
        """What the runs are tested on, by name: first what they were trained on, which has none."""
        return {"": {}, **self.conditions}

    @property
    def variants(self) -> tuple[str, ...]:
        """Names, in the order of the declaration."""
        return tuple(dict.fromkeys(cell.variant for cell in self.cells))

    def part(self, variants: Sequence[str], regimes: Sequence[float]) -> tuple[Cell, ...]:
        """The cells of some variants and of some tau_z; of all where none is named."""
        of_all = tuple(dict.fromkeys(cell.config.task.tau_z for cell in self.cells))
        _check_known("variants", variants, self.variants, repr)
        _check_known("tau_z", regimes, of_all, "{:.12g}".format)
        return tuple(
            cell
            for cell in self.cells
            if cell.variant in (variants or self.variants) and cell.config.task.tau_z in (regimes or of_all)
        )


def declared_studies() -> dict[str, str]:
    """The studies that come with the library, and what each is about."""
    return {path.stem: _parse(path)["about"] for path in sorted(_DECLARED.glob("*.toml"))}


def load_study(name: str, preset_name: str, seeds: Sequence[int] | None = None) -> Study:
    """A study by its name, or a user's own by its file; all its settings are checked.

    A user's own may not have the name of one of the library's, since the report takes those for the paper's.
    """
    path = _find(name)
    if path.parent != _DECLARED and (_DECLARED / path.name).exists():
        raise ValueError(f"study {name}: the library has a study {path.stem} of its own; give the file another name")
    try:
        declared = _parse(path)
        _check_trainers(path, declared.get("trained_by", ()))
        return _build(path.stem, declared, preset_name, seeds)
    except ValueError as error:
        raise ValueError(f"study {name}: {error}") from None


def comparisons(compare: str | Mapping[str, str] | None, variants: Iterable[str]) -> dict[str, str]:
    """Which variant is compared with which, from how it is declared: one name stands for all others against it."""
    if isinstance(compare, str):
        return {variant: compare for variant in variants if variant != compare}
    return dict(compare or {})


def command_name(name: str) -> str:
    """How a command is to name a study."""
    return name if (_DECLARED / f"{name}.toml").exists() else f"{name}.toml"


def _find(name: str) -> Path:
    path = Path(name) if name.endswith(".toml") else _DECLARED / f"{name}.toml"
    if name.endswith(".toml") and not path.is_file():
        raise ValueError(f"there is no file {name}")
    if not path.is_file() or (path.parent == _DECLARED and not re.fullmatch(r"\w+", path.stem)):
        known = ", ".join(sorted(each.stem for each in _DECLARED.glob("*.toml")))
        raise ValueError(f"there is no study {name!r}; accepted: {known}, or a file that ends in .toml")
    return path


def _parse(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"it cannot be read: {error}") from None
    if unknown := sorted(found.keys() - _KEYS):
        raise ValueError(f"unknown key {', '.join(unknown)}; accepted: {', '.join(_KEYS)}")
    if missing := [key for key in _NEEDED if key not in found]:
        raise ValueError(f"{', '.join(missing)} must be given")
    for key, value in found.items():
        if not isinstance(value, _KEYS[key]):
            such = ' such as "42-51"' if key == "seeds" else ""
            raise ValueError(f"{key} must be a {_WORDS[_KEYS[key]]}{such}, got {value!r}")
    return found


def _build(name: str, declared: Mapping[str, Any], preset_name: str, seeds: Sequence[int] | None) -> Study:
    if not re.fullmatch(r"\w[\w-]*", name):
        raise ValueError(f"a study's file must be named by letters, digits, _ and -; got {name!r}")
    if not declared["regimes"] or not declared["variants"]:
        raise ValueError("regimes and variants must have at least one entry each")
    for regime in declared["regimes"]:
        if not isinstance(regime, dict) or "tau_z" not in regime or not regime.keys() <= set(_OF_REGIME):
            raise ValueError(f"a regime must have tau_z and may have window, got {regime!r}")
    common = _parts("common", declared.get("common", {}))
    if "window" in common.get("task", {}) and any("window" in regime for regime in declared["regimes"]):
        raise ValueError("window must be given by common or by regimes, not by both")
    cells = tuple(
        _cell(variant, preset_name, regime, common, _parts(f"variant {variant!r}", changes))
        for variant, changes in declared["variants"].items()
        for regime in declared["regimes"]
    )
    found = Study(
        name=name,
        preset=preset_name,
        about=declared["about"],
        cells=cells,
        seeds=tuple(parse_seeds(declared["seeds"]) if seeds is None else seeds),
        compare=comparisons(declared.get("compare"), declared["variants"]),
        trained_by=tuple(declared.get("trained_by", ())),
        conditions=declared.get("conditions", {}),
    )
    _check(found)
    return found


def _check_known(what: str, asked: Iterable[Any], known: Sequence[Any], show: Callable[[Any], str]) -> None:
    if unknown := [each for each in asked if each not in known]:
        raise ValueError(f"{what} must be among {', '.join(map(show, known))}; got {', '.join(map(show, unknown))}")


def _check_trainers(path: Path, names: Sequence[Any]) -> None:
    """Refuse studies to train the runs that neither the library has nor the folder of the file."""
    known = {each.stem for folder in (_DECLARED, path.parent) for each in folder.glob("*.toml")}
    for name in names:
        if name not in known:
            raise ValueError(f"trained_by must name studies, such as {', '.join(sorted(known))}; got {name!r}")


def _check(study: Study) -> None:
    for name in (*study.variants, *study.conditions):
        if not name.strip() or not name.isprintable():
            raise ValueError(f"variants and conditions must have names that can be printed on one line, got {name!r}")
    _check_compare(study)
    places = [(cell.variant, cell.config.task.tau_z) for cell in study.cells]
    if len(set(places)) < len(places):
        raise ValueError("regimes must differ in tau_z")
    same: dict[str, str] = {}
    for cell in study.cells:
        if (other := same.setdefault(cell.key, cell.variant)) != cell.variant:
            raise ValueError(f"variants {other!r} and {cell.variant!r} are the same runs")
    for name, changes in study.conditions.items():
        _check_condition(study, name, changes)


def _check_compare(study: Study) -> None:
    for variant, other in study.compare.items():
        for name in (variant, other):
            if name not in study.variants:
                names = ", ".join(map(repr, study.variants))
                accepted = f"one of the variants {names}, or a table from one of them to another"
                raise ValueError(f"compare must be {accepted}; got {name!r}")
        if variant == other:
            raise ValueError(f"compare must name another variant for {variant!r} than itself")


def _check_condition(study: Study, name: str, changes: Any) -> None:
    if not isinstance(changes, dict) or not changes:
        raise ValueError(f"condition {name!r} must name at least one field of the task")
    if "window" in changes:
        raise ValueError(f"condition {name!r}: window cannot change after training, it is the policy's own")
    for cell in study.cells:
        try:
            tested = cell.config.task.replace(**changes)
        except ValueError as error:
            raise ValueError(f"condition {name!r}: {error}") from None
        for what in ("observation_dim", "action_dim"):
            if (wanted := getattr(cell.config.task, what)) != (found := getattr(tested, what)):
                raise ValueError(f"condition {name!r}: {what} would be {found}, trained policies have {wanted}")


def _parts(where: str, changes: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(changes, dict) or not all(isinstance(each, dict) for each in changes.values()):
        raise ValueError(f"{where} must hold tables of fields, such as encoder.k_max = 4; got {changes!r}")
    if unknown := sorted(changes.keys() - set(PARTS)):
        raise ValueError(f"{where} has an unknown part {', '.join(unknown)}; accepted: {', '.join(PARTS)}")
    if "tau_z" in changes.get("task", {}):
        raise ValueError(f"{where} must leave task.tau_z to regimes")
    return changes


def _cell(
    variant: str,
    preset_name: str,
    regime: Mapping[str, Any],
    common: Mapping[str, Mapping[str, Any]],
    own: Mapping[str, Mapping[str, Any]],
) -> Cell:
    try:
        return _settled(variant, preset_name, regime, common, own)
    except ValueError as error:
        where = f"variant {variant!r}"
        for parts, name in (((common,), "common"), ((), f"regime {regime!r}")):  # wrong without the variant, or both
            try:
                _settled(variant, preset_name, regime, *parts)
            except ValueError as without:
                where = name if str(without) == str(error) else where
        raise ValueError(f"{where}: {error}") from None


def _settled(
    variant: str, preset_name: str, regime: Mapping[str, Any], *changes: Mapping[str, Mapping[str, Any]]
) -> Cell:
    """The cell with these changes of the preset, the later ones over the earlier."""
    fields = {part: {name: value for each in changes for name, value in each.get(part, {}).items()} for part in PARTS}
    fields["task"] = {**regime, **fields["task"]}
    return Cell(variant, preset(preset_name, **fields))
