"""Studies: which runs make a claim, and running them here or on many machines."""
