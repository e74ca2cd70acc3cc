"""JSON files and logs: what they hold, and errors that name the file."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrt.storage.json import checksum, finite, json_line, read_json, read_lines, write_json

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def refuse(constant: str) -> None:
    """For what JSON does not know."""
    raise AssertionError(constant)


@given(TREES)
def test_whatever_is_written_is_json_and_numbers_that_it_does_not_know_are_null(tree: Any) -> None:
    text = json.dumps(finite(tree), allow_nan=False)
    assert json.loads(text, parse_constant=refuse) == finite(tree)


def test_only_what_is_not_finite_becomes_null() -> None:
    assert finite({"a": (1, math.nan), "b": [math.inf, {"c": -math.inf}], "d": 1e308}) == {
        "a": [1, None],
        "b": [None, {"c": None}],
        "d": 1e308,
    }


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "found.json"
    content = {"rmse": 0.1, "seeds": [1, 2], "words": "τ_z", "none": None}
    write_json(path, content)
    assert read_json(path) == content
    assert path.read_text().endswith("}\n")
    write_json(path, {"rmse": math.nan})
    assert read_json(path) == {"rmse": None}
    assert [each.name for each in path.parent.iterdir()] == ["found.json"]


def test_what_json_cannot_hold_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["found.json"]


def test_a_log_has_one_entry_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json_line({"step": 1, "loss": math.inf}) + json_line({"step": 2, "text": "a\nb"}))
    assert len(path.read_text().splitlines()) == 2
    assert read_lines(path) == [{"step": 1, "loss": None}, {"step": 2, "text": "a\nb"}]


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe", b'{"a": 1}\n{"b"'])
def test_what_cannot_be_read_is_refused_by_the_files_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "found.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{path} cannot be read: "):
        read_json(path)
    if content != b"":  # an empty log is a log
        with pytest.raises(ValueError, match=f"^{path} cannot be read: "):
            read_lines(path)


def test_a_checksum_does_not_depend_on_the_order_of_the_keys() -> None:
    assert checksum({"a": 1, "b": [2]}) == checksum({"b": [2], "a": 1})
    assert checksum({"a": 1, "b": [2]}) != checksum({"a": 1, "b": [3]})
    assert checksum([1]) == hashlib.sha256(b"[1]").hexdigest()
