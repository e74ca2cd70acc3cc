"""JSON files and logs: what they can hold, and errors that name the file."""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from incrt.storage.atomic import write_whole


def finite(value: Any) -> Any:
    """The value with null for every number that JSON does not know, wherever it stands."""
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, content: Any) -> None:
    """Write a file for people and programs, whole or not at all; numbers that JSON does not know become null."""
    write_whole(path, (json.dumps(finite(content), indent=2, allow_nan=False) + "\n").encode())


def json_line(entry: Mapping[str, Any]) -> str:
    """One line of a log."""
    return json.dumps(finite(entry), allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """What a file holds; one that cannot be read is refused."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What a log holds, of which each line is JSON; one that cannot be read is refused."""
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def checksum(content: Any) -> str:
    """Of what JSON can hold, in whatever order its keys are."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
