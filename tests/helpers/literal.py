"""The paper's equations (10) and (11), word for word: every time step, every head on its own, the causal mask."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from incrt.heads.attention import Attention


def literal_head(params: Attention, i: int, h: Array) -> Array:
    """head_i(h), eq. (11), at every time step of the window."""
    w_q, w_k, w_v, w_o = (w[i] for w in params.heads)
    causal = np.triu(np.full((h.shape[-2], h.shape[-2]), -np.inf, h.dtype), 1)
    scores = (h @ w_q) @ jnp.swapaxes(h @ w_k, -1, -2) / np.sqrt(w_q.shape[-1]).astype(h.dtype)
    return jnp.asarray(jax.nn.softmax(scores + causal, axis=-1) @ (h @ w_v) @ w_o)


def literal(params: Attention, mask: Array, context: Array) -> Array:
    """VarAttn(h), eq. (10), of which the last time step is the feature."""
    h = context @ params.embed + params.position
    out = h
    for i in range(len(mask)):
        out = out + jnp.where(mask[i], literal_head(params, i, h), 0)
    return jnp.asarray(out[..., -1, :])
