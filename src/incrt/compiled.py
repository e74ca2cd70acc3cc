"""Compiled programs that outlive a process."""

import jax

from incrt.tuning import cache_folder


def keep_compiled() -> None:
    """Keep compiled programs on disk, so that a second start is quick. Commands call this, the library does not."""
    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
