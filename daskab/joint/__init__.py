"""Several inputs at once: pairs of points that differ in any n inputs, excluded together (METHOD of this room)."""
