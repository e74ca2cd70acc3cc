"""Seeds as people write them."""

import re
from collections.abc import Iterable

from incrt.config.rules import LARGEST

_MOST_SEEDS = 10_000


def parse_seeds(text: str) -> list[int]:
    """The seeds that numbers and ranges name; each once, in order."""
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if found is None:
            raise ValueError(f"seeds must be numbers and ranges such as 42-51 or 1,5,7-9; got {text!r}")
        first = int(found[1])
        last = first if found[2] is None else int(found[2])
        if last > LARGEST:
            raise ValueError(f"seeds must be at most {LARGEST:g}, got {text!r}")
        if not first <= last < first + _MOST_SEEDS:
            raise ValueError(
                f"seeds must be ranges from the lower to the higher number, of {_MOST_SEEDS} at most; got {text!r}"
            )
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def format_seeds(seeds: Iterable[int]) -> str:
    """Seeds as :func:`parse_seeds` reads them, ranges together."""
    parts: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1][1:] = [seed]
        else:
            parts.append([seed])
    return ",".join("-".join(map(str, part)) for part in parts)
