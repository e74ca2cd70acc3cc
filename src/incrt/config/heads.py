"""What can be set of the encoder and of its heads while they learn (the paper's Table 4)."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from incrt.config.registry import TRIGGERS, description
from incrt.config.rules import (
    COUNT,
    FLAG,
    FRACTION,
    NON_NEGATIVE,
    UP_TO_ONE,
    Configuration,
    documented,
    one_of,
    optional,
    setting,
)

WITH_HEADS = ("runtime", "static")
"""Encoders that begin with ``k_init`` heads."""

ENCODERS = (*WITH_HEADS, "deep", "gru", "lstm", "none")
"""From a context to features: heads that grow, a fixed number of them, a deep Transformer, recurrent networks, the last
observation alone. What each name stands for is in :mod:`incrt.heads.encoders`; a test keeps the two lists equal."""

HEAD_STARTS = ("active", "silent", "frozen")
"""How heads begin: active ones with a random output matrix; all with an output of zero, as a grown head does; or all
K_max with a random one, of which a head learns nothing until it is grown. The last two part causes in studies."""

SHARE_RULES = ("absolute", "relative")
"""When a head is weak: its share is below eps_prune (the paper's), or below eps_prune times the uniform share 1/K."""

OPTIMISER_RULES = ("carry", "rebuild")
"""What an event does to Adam: survivors keep their moments and steps, or everything starts at zero (the paper's)."""


@documented
@dataclass(frozen=True)
class EncoderConfig(Configuration):
    """The encoder. The defaults are preset ``memory``."""

    encoder: str = setting(
        "runtime",
        one_of(ENCODERS),
        "Heads that grow, a fixed number of them, a deep Transformer, recurrent networks, the last observation alone.",
    )
    k_max: int = setting(8, COUNT, "K_max: head-count cap.")
    k_init: int | None = setting(
        None, optional(COUNT), "K_init: heads active at the start; None for one in runtime and for all in static."
    )
    d_k: int = setting(16, COUNT, "Key and value dimension of one head; the width of every encoder is K_max d_k.")
    layer_norm: bool = setting(default=True, rule=FLAG, about="Whether the features are layer-normalised.")
    layers: int = setting(2, COUNT, "Layers of the deep encoder.")
    head_start: str = setting(
        "active",
        one_of(HEAD_STARTS),
        "How heads begin: active ones random, all silent (W^O = 0), or all random and frozen until they are grown.",
        later=True,
    )

    def check_relations(self) -> None:
        if self.k_init is not None and self.encoder not in WITH_HEADS:
            raise ValueError(f"k_init goes with encoder {' or '.join(WITH_HEADS)}, not with {self.encoder}")
        if self.head_start != "active" and self.encoder not in WITH_HEADS:
            raise ValueError(f"head_start goes with encoder {' or '.join(WITH_HEADS)}, not with {self.encoder}")
        if self.head_start == "frozen" and not self.adapts:
            raise ValueError(f"head_start frozen goes with encoder runtime, which grows heads, not with {self.encoder}")
        if self.heads_at_start > self.k_max:
            raise ValueError(f"k_init must be at most k_max = {self.k_max}, got {self.k_init}")

    @property
    def d_model(self) -> int:
        """Width of the encoder."""
        return self.k_max * self.d_k

    @property
    def shape(self) -> "EncoderConfig":
        """The same without what only says how its heads begin and who may change them."""
        if self.encoder not in WITH_HEADS:
            return self
        head_start = "active" if self.head_start == "silent" else self.head_start
        return self.replace(encoder="runtime", k_init=None, head_start=head_start)

    @property
    def adapts(self) -> bool:
        """Whether heads may come and go."""
        return self.encoder == "runtime"

    @property
    def heads_at_start(self) -> int:
        """K_init as a number."""
        if self.k_init is not None:
            return self.k_init
        return self.k_max if self.encoder == "static" else 1


@documented
@dataclass(frozen=True, eq=False)
class HeadsConfig(Configuration):
    """When heads are grown and pruned, on what evidence, and what that does to the optimiser.

    The defaults are preset ``memory``. The fields from k_min to share are the paper's rule's; a trigger of the user's
    own may take them or leave them.
    """

    trigger: Any = setting("paper", TRIGGERS.rule, "What decides at a check whether a head is grown or pruned.")
    k_min: int = setting(1, COUNT, "K_min: fewest active heads.")
    eps_grow: float = setting(0.1, NON_NEGATIVE, "How far the rank must exceed K, relative to K, to ask for a head.")
    eps_prune: float = setting(1e-3, UP_TO_ONE, "Share below which a head is weak; share says what it is relative to.")
    delta_grow: int = setting(3, COUNT, "Checks in a row that must ask for a head before one is grown.")
    delta_prune: int = setting(3, COUNT, "Checks in a row at which a head must be weak before it is pruned.")
    grace: int = setting(2000, COUNT, "Cooldown: fewest environment steps between two events.")
    share: str = setting("absolute", one_of(SHARE_RULES), "Which shares are weak: below eps_prune, or eps_prune/K.")
    check_every: int = setting(500, COUNT, "t_chk: environment steps between two checks.")
    tokens: int = setting(1000, COUNT, "N: contexts of which the rank is taken, the latest ones.")
    alpha: float = setting(0.95, FRACTION, "Fraction of the sum of singular values that the rank must cover.")
    share_batch: int = setting(
        256, COUNT, "Contexts, drawn from replay, on which shares and certificates are measured."
    )
    enough: float = setting(
        0.02,
        NON_NEGATIVE,
        "Of trigger earned: fraction of the targets' variance that the critic may leave unexplained.",
        later=True,
    )
    worth: float = setting(
        0.005,
        NON_NEGATIVE,
        "Of trigger earned: by how much more may be left unexplained without a head that is pruned.",
        later=True,
    )
    max_jump: float = setting(
        0.05,
        NON_NEGATIVE,
        "Of trigger earned: the largest change of the policy, a mean over contexts, that a prune may bring.",
        later=True,
    )
    optimiser: str = setting(
        "carry", one_of(OPTIMISER_RULES), "What an event does to Adam: survivors carry on, or it is rebuilt."
    )

    def check_relations(self) -> None:
        if self.grace < self.check_every:
            raise ValueError(f"grace must be at least check_every = {self.check_every}, got {self.grace}")
        if self.tokens < 2:
            raise ValueError(f"tokens must be at least 2, for one token has no spread; got {self.tokens}")

    def check_start(self, k: int) -> None:
        """Refuse to start with so few heads."""
        if k < self.k_min:
            raise ValueError(f"{k} heads are active, but k_min = {self.k_min}; start with k_init >= k_min")

    def to_json(self) -> dict[str, Any]:
        """Every field as JSON has it; a trigger of the user's own by its class and a digest of its settings."""
        return dict(json.loads(self._text))

    @cached_property
    def _text(self) -> str:
        fields = {name: getattr(self, name) for name in self._written()}
        return json.dumps({**fields, "trigger": description(self.trigger)})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeadsConfig) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)
