"""What JSON can hold."""

import math
from collections.abc import Mapping
from typing import Any


def finite(value: Any) -> Any:
    """The value with null for every number that JSON does not know, wherever it stands."""
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
