"""Certificates: the paper's guarantees on single events (section 5.3), measured as the events happen.

At each event the outputs before and after it are compared on one fresh batch of contexts. Policy outputs are gains in
the unit coordinates of the box, so that a jump of 1 is half the range of a gain. What does not hold is reported as
such. :mod:`incrt.heads.guarantees` has the guarantees on whole runs.

Shares are means over a batch, so what the prune trigger promises is a bound on the *mean* jump over contexts. The paper
states it for every context; whether the largest jump keeps to the bound as well is reported beside it.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from incrt.heads.attention import Heads, attend, check_mask, contributions, head_slots, map_heads
from incrt.heads.encoders import Encoded, normalised
from incrt.heads.growth import check_event
from incrt.heads.layers import NORM_EPS, Array, Dense, Norm, mlp
from incrt.heads.linear import spectral_norm
from incrt.storage.json import finite


class Policy(NamedTuple):
    """G_theta: the heads encoder and the MLP head, of a stochastic actor the layers that lead to its mean."""

    encoder: Encoded
    layers: tuple[Dense, ...]


def unit_gains(policy: Policy, mask: Array, contexts: Array) -> Array:
    """G_theta(c) in the unit coordinates of the box P."""
    return _downstream(policy, attend(policy.encoder.body, mask, contexts))


def outputs(policy: Policy, mask: Array, contexts: Array) -> dict[str, Array]:
    """What a growth must not change: the output of the attention block, and the policy's."""
    block = attend(policy.encoder.body, mask, contexts)
    return {"encoder": block, "policy": _downstream(policy, block)}


def _downstream(policy: Policy, block: Array) -> Array:
    """All that comes after the attention block: normalisation, MLP head, squashing."""
    return jnp.tanh(mlp(policy.layers, normalised(policy.encoder.norm, block)))


class Evidence(NamedTuple):
    """What an event did, measured on one batch of contexts."""

    before: Mapping[str, Array]
    """Outputs by name; of a prune the policy's are needed."""
    after: Mapping[str, Array]
    energy: Array
    """Of the actor's parameters, before and after."""


# --- growth: Proposition "zero-loss-at-growth" --------------------------------------------------------------------


@dataclass(frozen=True)
class GrowCertificate:
    """Evidence that a grow event changed no output, eqs. (21)-(23)."""

    step: int
    head: int
    jumps: Mapping[str, float]
    """Largest change of each output over the batch, by the output's name."""
    energy_before: float
    energy_after: float

    @property
    def jump(self) -> float:
        """The largest change of any output."""
        return max(self.jumps.values(), key=lambda jump: math.inf if math.isnan(jump) else jump)

    @property
    def bound(self) -> float:
        """What the jump may be: nothing."""
        return 0.0

    @property
    def holds(self) -> bool:
        return self.jump == 0.0


def certify_grow(
    step: int,
    head: int,
    before: Mapping[str, npt.ArrayLike],
    after: Mapping[str, npt.ArrayLike],
    energy: tuple[float, float],
) -> GrowCertificate:
    """Compare named outputs on one batch; ``energy`` is that of the parameters before and after.

    Both sides must come from the same compiled function: two programs for one formula may round differently.
    """
    if before.keys() != after.keys() or not before:
        raise ValueError(f"the outputs before and after must be the same ones: {sorted(before)}, {sorted(after)}")
    jumps = {}
    for name in before:
        old, new = np.asarray(before[name], np.float64), np.asarray(after[name], np.float64)
        if old.shape != new.shape or old.size == 0:
            raise ValueError(f"{name} must have one shape before and after, got {old.shape} and {new.shape}")
        jumps[name] = float(np.max(np.abs(new - old)))
    return GrowCertificate(int(step), int(head), jumps, *energy)


# --- pruning: Theorem "policy-continuity bound" -------------------------------------------------------------------


class PruneMeasures(NamedTuple):
    """What is measured before a prune, over a batch of contexts."""

    k: Array
    """K before the event."""
    head: Array
    """The actor's head that is to go."""
    jump: Array
    """Mean over the batch of the norm of the policy's change that the prune will bring."""
    worst_jump: Array
    """Its largest value."""
    norms: Array
    """eta_j before the event, shape (K_max,)."""
    lipschitz_upper: Array
    """Upper bound on L_MLP between the two block outputs of every context of the batch."""
    lipschitz_local: Array
    """Largest slope of the downstream map at the block outputs of the batch."""


def measure_prune(
    policy: Policy, mask: Array, head: Array | int, contexts: Array, after: Policy | None = None
) -> PruneMeasures:
    """Measure what removing a head would do; ``mask`` is the one before the event. Pure, so many runs are a ``vmap``.

    ``after`` is the policy as it will be, without what the head puts out, where the others make up for that.
    """
    check_event(mask, head, active=False)
    with jax.default_matmul_precision("highest"):  # a jump may be smaller than the rounding of a GPU's fast products
        block = attend(policy.encoder.body, mask, contexts)
        each = contributions(policy.encoder.body, mask, contexts)
        left = _block_without(policy, mask, head, contexts) if after is None else _block(after, mask, contexts)
        change = _downstream(policy, left) - _downstream(policy, block)
        slopes = jax.vmap(jax.jacrev(lambda x: _downstream(policy, x)))(block)
        upper = lipschitz_upper(policy, block, block - left)
        local = jnp.max(spectral_norm(slopes))
    jumps = jnp.linalg.norm(change, axis=-1)
    return PruneMeasures(
        k=jnp.sum(mask),
        head=jnp.asarray(head),
        jump=jnp.mean(jumps),
        worst_jump=jnp.max(jumps),
        norms=jnp.mean(jnp.linalg.norm(each, axis=-1), axis=0),
        lipschitz_upper=upper,
        lipschitz_local=local,
    )


def _block(policy: Policy, mask: Array, contexts: Array) -> Array:
    return attend(policy.encoder.body, mask, contexts)


def _block_without(policy: Policy, mask: Array, head: Array | int, contexts: Array) -> Array:
    return _block(policy, mask.at[head].set(False), contexts)


def mean_jump(evidence: Evidence) -> float:
    """By how much an event has changed the policy: mean over the batch of the norm of the change."""
    before, after = (np.asarray(side["policy"], np.float64) for side in (evidence.before, evidence.after))
    return float(np.mean(np.linalg.norm(after - before, axis=-1)))


def lipschitz_upper(policy: Policy, block: Array, removed: Array) -> Array:
    """L_MLP: no slope of the downstream map between ``block`` and ``block - removed`` is larger.

    ReLU and tanh do not stretch, a matrix stretches by its largest singular value.
    """
    layers = jnp.prod(jnp.stack([spectral_norm(layer.w) for layer in policy.layers]))
    return layers * norm_stretch(policy.encoder.norm, block, removed)


def norm_stretch(norm: Norm | None, block: Array, removed: Array, xp: ModuleType = jnp) -> Array:
    """What a layer normalisation adds to L_MLP.

    It stretches by at most max|scale| over the standard deviation, which on the way from one point to the other falls
    by at most the standard deviation of what is removed.
    """
    if norm is None:
        return 1.0
    fallen = _std(block, xp) - _std(removed, xp)
    smallest = xp.amin(xp.where(fallen < 0, xp.zeros_like(fallen), fallen))
    return xp.amax(xp.abs(norm.scale)) / xp.sqrt(smallest**2 + NORM_EPS)


def _std(x: Array, xp: ModuleType) -> Array:
    return xp.sqrt(xp.mean((x - xp.mean(x, axis=-1, keepdims=True)) ** 2, axis=-1))


@dataclass(frozen=True)
class PruneCertificate:
    """Evidence for one prune event, eqs. (24) and (26)."""

    step: int
    head: int
    jump: float
    worst_jump: float
    share: float
    """pi_i of the pruned head on the batch of the certificate."""
    threshold: float | None
    """The share that the paper's rule allows: eps_prune, or eps_prune / K. None for a trigger that promises none."""
    total: float
    """S: sum of the active heads' norms, eq. (30)."""
    largest_norm: float
    """Largest eta_j, a mean over the batch like every norm here; it stands for sigma_max, which is no smaller."""
    lipschitz_upper: float
    lipschitz_local: float
    energy_before: float
    energy_after: float
    promised: float | None = None
    """The jump as it was measured before the event; None from versions that measured it only once."""
    limit: float | None = None
    """The jump that the trigger allows itself; None for a trigger that says nothing of it."""

    @property
    def bound(self) -> float:
        """What the trigger allows, or else L eps S with the upper bound on L; the share stands for a missing eps."""
        return self.lipschitz_upper * self._eps * self.total if self.limit is None else self.limit

    @property
    def bound_local(self) -> float:
        """L eps S with the measured slope in place of L; tighter, but a slope at points is no bound between them."""
        return self.lipschitz_local * self._eps * self.total

    @property
    def _eps(self) -> float:
        return self.share if self.threshold is None else self.threshold

    @property
    def premise_holds(self) -> bool | None:
        """Whether the head is weak on this batch too, eq. (26): what the theorem starts from."""
        return None if self.threshold is None else self.share < self.threshold

    @property
    def holds(self) -> bool:
        """Whether the mean jump keeps to the bound."""
        return self.jump <= self.bound

    @property
    def holds_local(self) -> bool:
        """Whether it keeps to the tighter one."""
        return self.jump <= self.bound_local

    @property
    def holds_everywhere(self) -> bool:
        """Whether the jump at every context of the batch keeps to the bound, as the paper states it."""
        return self.worst_jump <= self.bound


def promise_prune(
    step: int, head: int, threshold: float | None, limit: float | None, measured: PruneMeasures
) -> PruneCertificate:
    """The certificate as it can be known before a prune: its jump is the one that is to be expected.

    ``head`` is the number that becomes free; of the actor it may be another head that goes.
    """
    norms, gone = np.asarray(measured.norms, np.float64), int(measured.head)
    return PruneCertificate(
        step=int(step),
        head=int(head),
        jump=float(measured.jump),
        worst_jump=float(measured.worst_jump),
        share=float(norms[gone] / norms.sum()) if norms.sum() != 0 else 0.0,
        threshold=threshold,
        total=float(norms.sum()),
        largest_norm=float(norms.max()),
        lipschitz_upper=float(measured.lipschitz_upper),
        lipschitz_local=float(measured.lipschitz_local),
        energy_before=math.nan,
        energy_after=math.nan,
        promised=float(measured.jump),
        limit=limit,
    )


def certify_prune(promise: PruneCertificate, jump: float, energy: tuple[float, float]) -> PruneCertificate:
    """The promise, with the jump that came; ``energy`` is that of the parameters before and after."""
    return dataclasses.replace(promise, jump=jump, energy_before=energy[0], energy_after=energy[1])


Certificate = GrowCertificate | PruneCertificate
_OPTIONAL = ("threshold", "promised", "limit")
"""Figures of a prune that may be None, and not for want of a finite number."""


def to_json(certificate: Certificate) -> dict[str, Any]:
    """The certificate as JSON can hold it, verdict included; null stands for a number that is not finite."""
    derived = ("jump", "bound", "premise_holds", "holds", "bound_local", "holds_local", "holds_everywhere")
    found = {name: getattr(certificate, name) for name in derived if hasattr(certificate, name)}
    return dict(finite({**dataclasses.asdict(certificate), **found}))


def from_json(written: Mapping[str, Any]) -> Certificate:
    """The certificate that :func:`to_json` wrote."""
    kind = GrowCertificate if "jumps" in written else PruneCertificate
    fields = dataclasses.fields(kind)
    needed = {field.name for field in fields if field.default is dataclasses.MISSING}
    if missing := sorted(needed - set(written)):
        raise ValueError(f"a certificate needs {', '.join(missing)}; got {dict(written)!r}")
    known = {field.name: written[field.name] for field in fields if field.name in written}
    return kind(**{name: value if name in _OPTIONAL else _or_nan(value) for name, value in known.items()})


def _or_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _or_nan(entry) for name, entry in value.items()}
    return math.nan if value is None else value


def parameter_energy(params: Any, mask: Array) -> Array:
    """Sum of squares of the parameters in use: requirement P3 asks that it stay bounded along the events."""
    check_mask(mask, head_slots(params))

    def square(leaf: Array) -> Array:
        return jnp.sum(leaf * leaf)

    def of_heads(heads: Heads) -> Array:
        return jnp.sum(jnp.stack([square(jnp.where(mask[:, None, None], w, 0)) for w in heads]))

    return jnp.sum(jnp.stack(jax.tree.leaves(map_heads(of_heads, square, params))))
