"""The second path: a certificate's bounds proved again by formulas and code of their own (see METHOD.md)."""
