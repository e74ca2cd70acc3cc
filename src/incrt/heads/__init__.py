"""Heads that grow: attention, the check that changes their number, and what the paper promises of it."""
