"""The version, alone, so that packaging can read it without importing anything else."""

VERSION = "0.1.0"
