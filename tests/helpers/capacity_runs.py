"""Outcomes of capacity studies, made up."""

from typing import Any

from incrt.capacity.outcomes import Outcome


def outcome(**fields: Any) -> Outcome:
    """An outcome with the given fields."""
    usual: dict[str, Any] = {
        "study": "made_up",
        "task": "recall",
        "channels": 2,
        "variant": "growing",
        "seed": 0,
        "settings": "0123456789",
        "steps": 1000,
        "solved_at": 500,
        "final_error": 0.01,
        "k_end": 2,
        "grows": 2,
        "prunes": 1,
        "held": 3,
        "largest_jump": 0.02,
    }
    return Outcome(**{**usual, **fields})
