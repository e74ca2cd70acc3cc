"""Tasks on which the number of heads that is needed is known by construction."""
