"""Linear classifiers, certified exactly in rational numbers: pure mathematics. See METHOD.md beside this file."""
