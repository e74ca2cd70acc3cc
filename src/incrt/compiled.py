"""Compiled programs that outlive a process."""

import jax

from incrt.tuning import cache_folder


def keep_compiled() -> None:
    """Keep compiled programs on disk, so that a second start is quick. Commands call this, the library does not.

    A folder that the user has chosen, as JAX_COMPILATION_CACHE_DIR for example, stays the one.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
