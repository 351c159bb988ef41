"""``python -m daskab.cli``."""

from daskab.cli.entry import main

main()
