"""Controllers that do not learn: what they are, the classical ones, how they are tuned and evaluated."""
