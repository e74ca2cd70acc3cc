"""``python -m incrt``."""

from incrt.cli import program

program()
