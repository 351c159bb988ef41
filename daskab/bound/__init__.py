"""Proved upper bounds: pure mathematics on numpy arrays, compiled with numba. See METHOD.md beside this file."""
