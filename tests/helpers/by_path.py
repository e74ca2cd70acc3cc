"""Scripts that belong to no package."""

import importlib.util
from pathlib import Path
from typing import Any


def load(path: str | Path) -> Any:
    """A script as a module; its path is relative to the repository."""
    file = Path(__file__).parents[2] / path
    spec = importlib.util.spec_from_file_location(f"script_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
