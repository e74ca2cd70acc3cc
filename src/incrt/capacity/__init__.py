"""Capacity studies: how many heads a task needs, how many are found, and how soon it is learned with them."""
