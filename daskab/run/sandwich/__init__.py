"""Models of other kernels than EQ: a run for each part of one, and the certificate these come to (sandwich/METHOD)."""
