"""The figures behind the heads: agreement with the literal equations, jumps, schedules, ranks, and a prune.

Run with ``python benchmarks/heads_evidence.py``. The tests hold the same things to their limits; here they are numbers.
"""

import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import incrt
from incrt.heads import certificates, check, growth
from incrt.heads.adam import adam
from incrt.heads.attention import Attention, attend, head_norms, init_attention, shares
from incrt.heads.encoders import make_encoder
from incrt.heads.layers import init_mlp
from incrt.heads.rank import effective_rank
from incrt.heads.triggers import Decision, PaperTrigger

sys.path.append(str(Path(__file__).parent.parent / "tests" / "helpers"))
from checked import decide
from literal import literal

WINDOW, OBSERVED, D_K, K_MAX = 20, 11, 16, 8


def largest_difference(one: Any, other: Any) -> float:
    """Of any array of two trees, relative to the largest entry of that array."""
    pairs = zip(*(map(np.asarray, jax.tree.leaves(tree)) for tree in (one, other)), strict=True)
    return max(float(np.max(np.abs(x - y)) / max(np.max(np.abs(y)), 1e-30)) for x, y in pairs)


def agreement(dtype: Any, scale: float) -> tuple[float, float, float]:
    """Fast against literal over twenty draws: value, gradient, and the largest score met."""
    value, gradient, score = 0.0, 0.0, 0.0

    def both(form: Any) -> Any:
        def squares(params: Attention, mask: Array, context: Array) -> Array:
            return jnp.sum(form(params, mask, context) ** 2)

        return jax.jit(lambda *arguments: (form(*arguments), jax.grad(squares)(*arguments)))

    fast, slow = both(attend), both(literal)
    for seed in range(20):
        keys = jax.random.split(jax.random.key(seed), 3)
        params = init_attention(keys[0], jnp.ones(K_MAX, bool), WINDOW, OBSERVED, D_K)
        context = scale * jax.random.normal(keys[1], (16, WINDOW, OBSERVED))
        params, context = jax.tree.map(lambda x: x.astype(dtype), (params, context))
        mask = jax.random.bernoulli(keys[2], 0.6, (K_MAX,))
        found, expected = fast(params, mask, context), slow(params, mask, context)
        value = max(value, largest_difference(found[0], expected[0]))
        gradient = max(gradient, largest_difference(found[1], expected[1]))
        h = context @ params.embed + params.position
        query = jnp.einsum("bm,kmd->bkd", h[:, -1], params.heads.w_q)
        scores = jnp.einsum("bkd,bwm,kmd->bkw", query, h, params.heads.w_k) / np.sqrt(D_K)
        score = max(score, float(jnp.max(jnp.abs(scores))))
    return value, gradient, score


def learner(active: int) -> growth.Learned:
    """Three networks with heads, the first ``active`` of them on."""
    encoder = make_encoder(incrt.EncoderConfig(k_init=active), WINDOW, OBSERVED)
    keys = jax.random.split(jax.random.key(0), 6)
    actor, critic, target = (
        certificates.Policy(encoder.init(first), init_mlp(second, (K_MAX * D_K, 64, 64, 6)))
        for first, second in zip(keys[::2], keys[1::2], strict=True)
    )
    optimiser = adam(3e-4)
    return growth.Learned(encoder.first_mask, actor, critic, target, optimiser.init(actor), optimiser.init(critic))


def jumps(contexts: Array) -> list[float]:
    """The largest change of any encoder or policy output at each growth from one head to eight."""
    look, learned, found = jax.jit(certificates.outputs), learner(1), []
    for head in range(1, K_MAX):
        before = [look(net, learned.mask, contexts) for net in learned[1:4]]
        learned = growth.grow(learned, head, jax.random.fold_in(jax.random.key(1), head), "carry")
        after = [look(net, learned.mask, contexts) for net in learned[1:4]]
        pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
        found.append(max(float(jnp.max(jnp.abs(x - y))) for x, y in pairs))
        # Every head must put something out before the next one grows, as it does after some training.
        live = jax.tree.map(
            lambda x: x + 0.01 * jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape), learned[1:4]
        )
        learned = learned._replace(actor=live[0], critic=live[1], target=live[2])
    return found


def schedule(grace: int, k_max: int) -> list[int]:
    """Steps at which heads grow if the rank stays high."""
    config, grown = incrt.HeadsConfig(grace=grace), []
    state = check.first_heads(config, [True] + [False] * (k_max - 1))
    for step in range(config.check_every, 50_001, config.check_every):
        decision, state = decide(config, state, step, 100.0, [on / state.k for on in state.mask])
        grown += [step] if decision.action == "grow" else []
    return grown


def ranks_that_differ() -> int:
    """Of 200 random matrices, full and deficient, those whose rank is not the one by SVD."""
    wrong = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        count, width = random.integers(2, 80, 2)
        inner = random.integers(1, min(count, width) + 1)
        tokens = random.normal(size=(count, inner)) @ random.normal(size=(inner, width)) + random.normal()
        sigma = np.linalg.svd(tokens - tokens.mean(0), compute_uv=False)
        wrong += effective_rank(tokens) != 1 + np.sum(np.cumsum(sigma) < 0.95 * (1 - 1e-9) * sigma.sum())
    return wrong


def prunes(contexts: Array) -> list[certificates.PruneCertificate]:
    """Eight heads, two of them faint, under the relative rule."""
    config, learned, found = incrt.HeadsConfig(share="relative", eps_prune=0.1), learner(K_MAX), []
    heads = learned.actor.encoder.body.heads
    faint = heads._replace(w_o=heads.w_o.at[2].multiply(0.02).at[5].multiply(0.05))
    body = learned.actor.encoder.body._replace(heads=faint)
    learned = learned._replace(actor=learned.actor._replace(encoder=learned.actor.encoder._replace(body=body)))
    outputs = jax.jit(certificates.outputs)

    def measure() -> check.Measured:
        norms = head_norms(learned.actor.encoder.body, learned.mask, contexts)
        return check.Measured(2.0, shares(norms, learned.mask).tolist())

    def weigh(decision: Decision) -> certificates.PruneMeasures:
        return certificates.measure_prune(learned.actor, learned.mask, decision.head or 0, contexts)

    def look() -> tuple[dict[str, Array], Array]:
        energy = certificates.parameter_energy(learned.actor, learned.mask)
        return outputs(learned.actor, learned.mask, contexts), energy

    def act(decision: Decision) -> certificates.Evidence:
        nonlocal learned
        before, energy = look()
        learned = growth.prune(learned, decision.head or 0, config.optimiser)
        after, energy_after = look()
        return certificates.Evidence(before, after, (energy, energy_after))

    state = check.first_heads(config, learned.mask.tolist())
    for step in range(500, 20_001, 500):
        each, state = check.check_run(step, check.Watched(PaperTrigger(config), state), measure, weigh, act)
        if isinstance(each.certificate, certificates.PruneCertificate):
            found.append(each.certificate)
    return found


def main() -> None:
    """Print all figures."""
    print("fast against literal attention, largest relative difference: value, gradient (largest score)")
    for dtype in (jnp.float32, jnp.float64):
        with jax.enable_x64(dtype == jnp.float64):
            for scale in (1.0, 3.0, 10.0, 100.0):
                value, gradient, score = agreement(dtype, scale)
                print(f"  {dtype.__name__} {value:9.1e} {gradient:9.1e}   ({score:.0f})")
    contexts = jax.random.normal(jax.random.key(7), (256, WINDOW, OBSERVED))
    print("largest jump at each growth, 1 -> 8 heads, three networks:", *jumps(contexts))
    for grace, k_max in ((2000, 8), (1000, 8), (5000, 8), (2000, 16)):
        print(f"growths with grace {grace}, K_max {k_max}:", *schedule(grace, k_max))
    print("ranks that differ from the SVD's, of 200:", ranks_that_differ())
    print("prunes by the relative rule, 8 heads of which 2 are faint:")
    for each in prunes(contexts):
        verdict = "holds" if each.holds else "DOES NOT HOLD"
        print(
            f"  step {each.step}, head {each.head}: share {each.share:.1e} < {each.threshold:.1e}, "
            f"jump {each.jump:.1e} (worst {each.worst_jump:.1e}), bound {each.bound:.1e}, "
            f"local {each.bound_local:.1e}: {verdict}; "
            f"energy {each.energy_before:.1f} -> {each.energy_after:.1f}"
        )


if __name__ == "__main__":
    main()
