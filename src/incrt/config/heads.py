"""What can be set of the encoder and of the runtime controller (the paper's Table 4)."""

from dataclasses import dataclass

from incrt.config.rules import (
    COUNT,
    FRACTION,
    NON_NEGATIVE,
    PART,
    Configuration,
    check_flag,
    check_name,
    settle_scalars,
    whole,
)

WITH_HEADS = ("runtime", "static")
"""Encoders that begin with ``k_init`` heads."""

ENCODERS = (*WITH_HEADS, "deep", "gru", "lstm", "none")
"""From a context to features: heads that grow, a fixed number of them, a deep Transformer, recurrent networks, the last
observation alone."""

RANKS = ("energy", "entropy", "stable", "participation")
"""Ranks that can ask for growth; ``energy`` is the paper's."""

SHARE_RULES = ("absolute", "relative")
"""When a head is weak: its share is below eps_prune (the paper's), or below eps_prune times the uniform share 1/K."""

OPTIMISER_RULES = ("carry", "rebuild")
"""What an event does to Adam: survivors keep their moments and steps, or everything starts at zero (the paper's)."""


@dataclass(frozen=True)
class EncoderConfig(Configuration):
    """The encoder. The defaults are preset ``memory``."""

    encoder: str = "runtime"
    """Which network, one of ENCODERS."""
    k_max: int = 8
    """K_max: head-count cap."""
    k_init: int | None = None
    """K_init: heads active at the start; None stands for one in ``runtime`` and for all of them in ``static``."""
    d_k: int = 16
    """Key and value dimension of one head; the width of every encoder is K_max d_k."""
    layer_norm: bool = True
    """Whether the features are layer-normalised."""
    layers: int = 2
    """Layers of the ``deep`` encoder."""

    def __post_init__(self) -> None:
        settle_scalars(self, {}, {"k_max": COUNT, "d_k": COUNT, "layers": COUNT})
        if self.k_init is not None:
            object.__setattr__(self, "k_init", whole("k_init", self.k_init, COUNT))
        check_name("encoder", self.encoder, ENCODERS)
        check_flag("layer_norm", self.layer_norm)
        if self.k_init is not None and self.encoder not in WITH_HEADS:
            raise ValueError(f"k_init goes with encoder {' or '.join(WITH_HEADS)}, not with {self.encoder}")
        if self.heads_at_start > self.k_max:
            raise ValueError(f"k_init must be at most k_max = {self.k_max}, got {self.k_init}")

    @property
    def d_model(self) -> int:
        """Width of the encoder."""
        return self.k_max * self.d_k

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


@dataclass(frozen=True)
class RuntimeConfig(Configuration):
    """The runtime controller and its two signals. The defaults are preset ``memory``."""

    k_min: int = 1
    """K_min: fewest active heads."""
    eps_grow: float = 0.1
    """How far the rank must exceed K, relative to K, to ask for a head."""
    eps_prune: float = 1e-3
    """Share below which a head is weak; what it is relative to is ``share``'s to say."""
    delta_grow: int = 3
    """Checks in a row that must ask for a head before one is grown."""
    delta_prune: int = 3
    """Checks in a row at which a head must be weak before it is pruned."""
    grace: int = 2000
    """Cooldown: fewest environment steps between two events."""
    check_every: int = 500
    """t_chk: environment steps between two checks."""
    rank: str = "energy"
    """Which rank asks for growth, one of RANKS."""
    tokens: int = 1000
    """N: contexts of which the rank is taken, the latest ones."""
    alpha: float = 0.95
    """Part of the sum of singular values that the ``energy`` rank must cover."""
    share: str = "absolute"
    """Which shares are weak, one of SHARE_RULES."""
    share_batch: int = 256
    """Contexts, drawn from replay, on which shares and certificates are measured."""
    optimiser: str = "carry"
    """What an event does to Adam, one of OPTIMISER_RULES."""

    def __post_init__(self) -> None:
        settle_scalars(self, _RUNTIME_SCALARS, _RUNTIME_WHOLES)
        check_name("rank", self.rank, RANKS)
        check_name("share", self.share, SHARE_RULES)
        check_name("optimiser", self.optimiser, OPTIMISER_RULES)
        if self.grace < self.check_every:
            raise ValueError(f"grace must be at least check_every = {self.check_every}, got {self.grace}")
        if self.tokens < 2:
            raise ValueError(f"tokens must be at least 2, for one token has no spread; got {self.tokens}")

    def check_start(self, k: int) -> None:
        """Refuse to start with so few heads."""
        if k < self.k_min:
            raise ValueError(f"{k} heads are active, but k_min = {self.k_min}; start with k_init >= k_min")

    def share_threshold(self, k: int) -> float:
        """The share below which one of k active heads is weak."""
        return self.eps_prune if self.share == "absolute" else self.eps_prune / k

    def asks_for_growth(self, rank: float, k: int) -> bool:
        """The rank's part of eq. (19)."""
        return rank > k * (1 + self.eps_grow)


_RUNTIME_SCALARS = {"eps_grow": NON_NEGATIVE, "eps_prune": PART, "alpha": FRACTION}
_RUNTIME_WHOLES = {
    "k_min": COUNT,
    "delta_grow": COUNT,
    "delta_prune": COUNT,
    "grace": COUNT,
    "check_every": COUNT,
    "tokens": COUNT,
    "share_batch": COUNT,
}
