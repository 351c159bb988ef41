"""Pairs searched by their midpoint: any number of inputs moved, few directions between the centres (METHOD J1-J6)."""
