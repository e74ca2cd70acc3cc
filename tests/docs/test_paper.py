"""docs/paper.md names only what exists, and leaves out no number."""

import importlib
import re
from pathlib import Path

import incrt

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "paper.md").read_text()


def resolve(name: str) -> object:
    """The object behind a dotted name under ``incrt``."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(["incrt", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            annotations = getattr(found, "__annotations__", {})
            found = annotations[part] if part in annotations and not hasattr(found, part) else getattr(found, part)
        return found
    raise AssertionError(name)


def test_every_name_in_the_map_exists() -> None:
    modules = {path.stem for path in Path(incrt.__file__).parent.iterdir()}
    names = {name for name in re.findall(r"`([a-z_0-9]+(?:\.\w+)+)`", TEXT) if name.split(".")[0] in modules}
    assert len(names) > 50
    for name in names:
        resolve(name)


def test_every_test_it_calls_upon_exists() -> None:
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    called = set(re.findall(r"`(test_\w+)`", TEXT))
    assert len(called) > 8
    assert called <= defined


def test_every_equation_table_and_figure_is_there() -> None:
    equations = TEXT[TEXT.index("## Equations") : TEXT.index("## Definitions")]
    found: set[int] = set()
    for cell in re.findall(r"^\| (\([^|]*) \|", equations, flags=re.MULTILINE):
        numbers = [int(number) for number in re.findall(r"\((\d+)\)", cell)]
        found |= set(range(numbers[0], numbers[-1] + 1))
    assert found == set(range(1, 34))
    for item in ("Table 1", "Table 2", "Table 3", "Table 4", "Figure 1", "Figures 2"):
        assert item in TEXT
