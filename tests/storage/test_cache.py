"""What outlives a process."""

import jax
import pytest

from incrt.storage.cache import keep_compiled

KEPT_FROM = "jax_persistent_cache_min_compile_time_secs"


def test_the_environment_decides_from_when_on_a_compiled_program_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    before = getattr(jax.config, KEPT_FROM)
    try:
        for said, kept_from in ((None, 0.5), ("0.1", 7.0)):
            jax.config.update(KEPT_FROM, 7.0)
            if said is None:
                monkeypatch.delenv(KEPT_FROM.upper(), raising=False)
            else:
                monkeypatch.setenv(KEPT_FROM.upper(), said)  # which JAX has read when it was loaded
            keep_compiled()
            assert getattr(jax.config, KEPT_FROM) == kept_from
    finally:
        jax.config.update(KEPT_FROM, before)
