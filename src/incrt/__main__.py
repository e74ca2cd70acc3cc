"""``python -m incrt``."""

from incrt.cli import main

main()
