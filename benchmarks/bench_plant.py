"""Speed of the task: control steps per second in a batch, and the latency of one environment step.

Run with ``make bench``. Peers in the same run: gymnax's Pendulum-v1 for the batch and Gymnasium's Pendulum-v1 for the
single environment; both simulate a far simpler plant.
"""

import argparse
import dataclasses
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import gymnax
import jax
from jax import Array

import incrt
from incrt.arm.plant import PlantState, control_step
from incrt.arm.task import Task, make_task

STEPS = 500


def steps_per_second(run: Callable[..., Any], inputs: tuple[Any, ...], steps: int, repeats: int = 7) -> float:
    """Median over the repeats, after a warm-up that compiles."""
    jax.block_until_ready(run(*inputs))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run(*inputs))
        seconds.append(time.perf_counter() - start)
    return steps / statistics.median(seconds)


def batch_figures(batch: int) -> dict[str, float]:
    """Control steps per second of the plant alone, of the environment with and without shield, and of the peer."""
    task, params = make_task(incrt.TaskConfig())
    keys = jax.random.split(jax.random.key(0), batch)
    _, states = jax.vmap(task.reset_env, in_axes=(0, None))(keys, params)
    torques = 20 * jax.random.normal(jax.random.key(1), (STEPS, batch, 2))
    actions = jax.random.uniform(jax.random.key(2), (STEPS, batch, 6), minval=-1, maxval=1)

    @jax.jit
    def plant(start: PlantState, payloads: Array, torques: Array) -> PlantState:
        def step(states: PlantState, torques: Array) -> tuple[PlantState, None]:
            advance = partial(control_step, params.plant, substeps=task.substeps)
            return jax.vmap(advance)(states, torques, payloads), None

        return jax.lax.scan(step, start, torques)[0]

    @partial(jax.jit, static_argnums=0)
    def environment(task: Task, state: Any, actions: Array) -> tuple[Any, Array]:
        def step(state: Any, action: Array) -> tuple[Any, Array]:
            key = jax.random.key(0)  # without noise no draw is made
            _, state, reward, _, _ = jax.vmap(lambda s, a: task.step_env(key, s, a, params))(state, action)
            return state, reward.sum()

        return jax.lax.scan(step, state, actions)

    peer_env, peer_params = gymnax.make("Pendulum-v1")
    _, peer_states = jax.vmap(lambda k: peer_env.reset_env(k, peer_params))(keys)

    @jax.jit
    def peer(state: Any, actions: Array) -> tuple[Any, Array]:
        def step(state: Any, action: Array) -> tuple[Any, Array]:
            key = jax.random.key(0)
            _, state, reward, *_ = jax.vmap(lambda s, a: peer_env.step_env(key, s, a, peer_params))(state, action)
            return state, reward.sum()

        return jax.lax.scan(step, state, actions)

    return {
        "plant": steps_per_second(plant, (states.plant, states.payload, torques), STEPS * batch),
        "environment": steps_per_second(environment, (task, states, actions), STEPS * batch),
        "environment without shield": steps_per_second(
            environment, (dataclasses.replace(task, shield=False), states, actions), STEPS * batch
        ),
        "gymnax Pendulum-v1": steps_per_second(peer, (peer_states, actions[..., :1]), STEPS * batch),
    }


def step_latency(name: str, **fields: Any) -> float:
    """Median microseconds of ``env.step``."""
    env = gymnasium.make(name, **fields).unwrapped
    env.reset(seed=0)
    actions = [env.action_space.sample() for _ in range(150)]
    seconds = []
    for _ in range(20):
        env.reset()
        for action in actions:
            start = time.perf_counter()
            env.step(action)
            seconds.append(time.perf_counter() - start)
    return 1e6 * statistics.median(seconds)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=4096)
    batch = parser.parse_args().batch
    print(f"{jax.devices()[0].platform}, {os.cpu_count()} cores, jax {jax.__version__}")
    figures = batch_figures(batch)
    peer_speed = figures["gymnax Pendulum-v1"]
    print(f"\ncontrol steps per second, batch {batch}, median of 7 runs of {STEPS} steps")
    for name, value in figures.items():
        print(f"  {name:48s} {value / 1e6:8.2f} million   {value / peer_speed:6.2f} x peer")
    print("\nlatency of one step of a single environment, median of 3000")
    peer = step_latency("Pendulum-v1")
    for name, fields in (("incrt/Stribeck-v0", {"window": 20}), ("incrt/Stribeck-v0", {"window": 50})):
        value = step_latency(name, **fields)
        print(f"  {name} {fields!s:36s} {value:8.1f} us   {value / peer:6.2f} x peer")
    print(f"  {'Pendulum-v1 (peer)':54s} {peer:8.1f} us")


if __name__ == "__main__":
    main()
