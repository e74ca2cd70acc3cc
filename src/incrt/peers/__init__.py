"""What a user would train with instead of the engine, each made ready for ``incrt bench cpu``."""
