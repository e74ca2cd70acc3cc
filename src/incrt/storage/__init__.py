"""Files: written whole or not at all, locked, read with errors that name them, kept where they can be made again."""
