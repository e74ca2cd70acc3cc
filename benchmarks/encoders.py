"""The encoders beside each other: parameters, and the time of one forward and backward pass.

Run with ``python benchmarks/encoders.py``. Batch 256, as in training; times are medians in milliseconds. With
``--runs 10`` a pass is that of so many runs at once, as a GPU trains them.
"""

import argparse
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

import incrt
from incrt.config import ENCODERS
from incrt.heads.encoders import Encoded, make_encoder, parameter_count

BATCH = 256


def milliseconds(encoder_name: str, window: int, runs: int) -> tuple[int, int, float]:
    """Parameters of a run at the start and with all heads, and the time of a gradient of all runs."""
    config = incrt.EncoderConfig(encoder=encoder_name)
    encoder = make_encoder(config, window, incrt.TaskConfig().observation_dim)
    params = encoder.init(jax.random.key(0))
    many = jax.vmap(encoder.init)(jax.random.split(jax.random.key(0), runs))
    contexts = jax.random.normal(jax.random.key(1), (runs, BATCH, window, encoder.observation_dim))
    mask = jnp.ones_like(encoder.first_mask)

    def gradient(params: Encoded, contexts: Array) -> Any:
        return jax.grad(lambda params: jnp.sum(encoder.features(params, mask, contexts) ** 3))(params)

    if runs == 1:
        many, contexts, gradients = params, contexts[0], jax.jit(gradient)
    else:
        gradients = jax.jit(jax.vmap(gradient))
    taken = []
    for _ in range(12):
        begin = time.perf_counter()
        jax.block_until_ready(gradients(many, contexts))
        taken.append(1e3 * (time.perf_counter() - begin))
    return parameter_count(params, encoder.first_mask), parameter_count(params, mask), statistics.median(taken[2:])


def main() -> None:
    """Print one line for each encoder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="how many at once")
    runs = parser.parse_args().runs
    print("encoder   parameters (W = 20)   with all heads   gradient W = 20   W = 50  [ms]")
    for name in ENCODERS:
        start, full, short = milliseconds(name, 20, runs)
        _, _, long = milliseconds(name, 50, runs)
        print(f"{name:8s} {start:20,d} {full:16,d} {short:17.1f} {long:8.1f}")


if __name__ == "__main__":
    main()
