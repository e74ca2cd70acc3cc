"""Attention whose heads come and go: the encoders, when a head is grown or pruned, and what certifies it."""
