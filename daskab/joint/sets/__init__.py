"""Sets of inputs searched one by one: few inputs moved, any number of centres (METHOD J7)."""
