"""Roots, summits and edges of functions, and rules for integrals over boxes that curves cut, for many at once."""
