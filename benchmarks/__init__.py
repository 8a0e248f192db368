"""Measurements: run one with ``python -m benchmarks.<name>``. None of them is a test."""
