"""Kernels between sums of EQ kernels: how other kernels than EQ are bounded (METHOD.md)."""
