"""What CONTRIBUTING.md says of adding things: which files to touch, and that they are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
THINGS = {
    *("study", "rank signal", "encoder", "claim", "reference controller", "friction model", "robot", "trajectory"),
    "peer of the engine",
}


def touched() -> dict[str, list[str]]:
    """Of each thing to add, the files of src/incrt that its row names."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| an? ([a-z ]+) \| (.*?) \|", text, re.MULTILINE)
    return {name: re.findall(r"`([\w/]+(?:\.py|\.toml|/))`", files) for name, files in rows}


def test_at_most_two_files_are_touched_for_each_thing() -> None:
    found = touched()
    assert found.keys() == {*THINGS, "trigger"}
    assert {name: len(files) for name, files in found.items() if not 1 <= len(files) <= 2} == {}


def test_the_files_that_it_names_are_there() -> None:
    for files in touched().values():
        for name in files:
            path = ROOT / "src" / "incrt" / name
            assert path.parent.is_dir() if "NAME" in name else path.exists(), name
