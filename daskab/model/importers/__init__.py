"""Models fitted elsewhere, as kernel expansions; each library's own predictions witness the import."""
