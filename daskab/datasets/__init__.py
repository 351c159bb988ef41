"""Labelled data to fit on and test with: what is known of it, where it lies, how it is read and prepared."""

from daskab.datasets.points import Dataset, drop_constant, load_digits, rescale, split
from daskab.datasets.readers import load
from daskab.datasets.registry import known

__all__ = ["Dataset", "drop_constant", "known", "load", "load_digits", "rescale", "split"]
