"""Prices of the next tree: what memory and budget allow."""

from types import SimpleNamespace

import pytest

from internals import prices
from pibls.budget import Budget


def fake(dimension, cells, held):
    """Return a fitter on so many cells that hold so many bytes, its course, and its last solution."""
    reference = SimpleNamespace(dimension=dimension, degree=8)
    fitter = SimpleNamespace(layout=SimpleNamespace(reference=reference), memory=held, work=lambda cells, new: new)
    return fitter, SimpleNamespace(stages=[1], budget=Budget(10.0)), SimpleNamespace(parts=range(cells))


@pytest.mark.parametrize(("dimension", "more"), [(1, 120), (2, 120), (3, 56)])
def test_memory_grows_as_cells_do_and_in_space_as_the_cuts_of_the_domain(monkeypatch, dimension, more):
    monkeypatch.setattr(prices, "available_memory", lambda: 16e9)
    fitter, course, fit = fake(dimension, 8, 1e9)
    assert prices.room(fitter, course, fit) == pytest.approx(more)
    found = SimpleNamespace(is_on_one_tree=False, latest=fit)
    cost = prices.next_cost(fitter, course, found, more, is_smooth=False)
    assert cost.memory == pytest.approx(16e9)


def test_the_budget_limits_cells_before_memory_does(monkeypatch):
    monkeypatch.setattr(prices, "available_memory", lambda: 1e15)
    fitter, course, fit = fake(2, 8, 1e9)
    course.budget.spend(1e11 - 100.0)
    assert 50 < prices.room(fitter, course, fit) <= 150
