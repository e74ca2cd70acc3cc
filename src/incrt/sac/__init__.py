"""The population engine: many runs of Soft Actor-Critic at once."""
