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

    What the user has chosen stays: the folder, as JAX_COMPILATION_CACHE_DIR for example, and in the environment how
    long a program must compile to be kept.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
