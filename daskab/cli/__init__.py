"""The command line: parses, calls, prints. Standard output is for results, standard error for the rest."""

from daskab.cli.entry import main

__all__ = ["main"]
