"""Attained values and witnesses: what an attacker is known to be able to do."""
