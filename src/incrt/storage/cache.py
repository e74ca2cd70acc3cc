"""Where results that can be made again are kept: tuned controllers, and compiled programs that outlive a process."""

import os
from pathlib import Path

import jax


def cache_folder() -> Path:
    """$INCRT_CACHE, or ``incrt`` in the user's cache folder."""
    if folder := os.environ.get("INCRT_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "incrt"


def keep_compiled() -> None:
    """Keep compiled programs on disk, so that a second start is quick. Commands call this, the library does not.

    A folder that the user has chosen, as JAX_COMPILATION_CACHE_DIR for example, stays the one.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
