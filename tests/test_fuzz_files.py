"""A sample of forged files; ``python -m benchmarks.fuzz_files`` runs as many as one likes."""

from __future__ import annotations

import pytest
from benchmarks.fuzz_files import KINDS, cases


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_of_forged_files_is_read_or_refused_in_words(kind):
    assert [(number, fault) for number, fault, *_ in cases(kind, range(60), seed=1) if fault] == []
