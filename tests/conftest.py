"""Settings shared by all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# How many threads share a sum follows the load of the machine, and changes its last bit. Read when NumPy is imported.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# The suite gives the same answer on every run; HYPOTHESIS_PROFILE=explore looks for new counterexamples.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
