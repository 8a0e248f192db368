"""Bands with noisy measurements hold as much of the solution as they say."""

from __future__ import annotations

import numpy as np
import pytest

from internals import LEVELS, NOISE, MeasuredCoverage, Setting, chosen, coverage, coverage_cell


def test_measurements_replace_the_conditions_and_have_the_noise_they_should():
    data = MeasuredCoverage(Setting("poisson_star", 100, 0))
    assert len(data.problem.conditions) == 1
    assert data.where.shape == (300, 2)
    size = np.sqrt(np.mean(data.exact(data.where) ** 2))
    assert data.sigma == pytest.approx(NOISE * size)
    noise = data.values - data.exact(data.where)
    assert noise.std() == pytest.approx(data.sigma, rel=0.15)
    assert (MeasuredCoverage(Setting("poisson_star", 100, 0)).values == data.values).all()
    assert not np.isin(MeasuredCoverage(Setting("poisson_star", 100, 1)).values, data.values).any()
    assert data.problem.exact is None


def test_the_scale_of_the_highest_evidence_is_chosen(monkeypatch):
    monkeypatch.setattr(coverage, "scales", lambda _: [0.3, 6.0, 40.0])
    data = MeasuredCoverage(Setting("advection", 30, 0))
    assert chosen(data).scale == 6.0


def test_bands_cover_what_they_promise(monkeypatch):
    monkeypatch.setattr(coverage, "scales", lambda _: [6.0])
    cell = coverage_cell("advection", 30, 100)
    found = cell["extra"]
    shares = dict(zip(LEVELS, found["coverage"], strict=True))
    assert 0.90 <= shares[0.95] <= 0.99
    assert found["coverage"] == sorted(found["coverage"])
    assert np.mean(found["inside"]) == pytest.approx(shares[0.95])
    assert np.median(found["noise"]) == pytest.approx(1.0, abs=0.1)
    # Thirty measurements of 5 % noise know the one free constant to about 1 %.
    assert 0.004 < np.median(found["errors"]) < 0.02
    assert len(found["curve"]["x"]) == 201
    assert cell["parameters"] == 100
    assert cell["settings"]["scale"] == 6.0
