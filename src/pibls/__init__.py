"""Solve differential equations with broad random-feature networks."""
