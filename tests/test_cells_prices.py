"""Prices of the next tree: what memory and budget allow."""

from types import SimpleNamespace

import pytest
import sympy as sp

import pibls as pb
from internals import prices
from pibls.budget import Budget
from pibls.runtime import RATE


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


def test_a_solid_with_an_inward_edge_ends_beside_a_poorer_solution_on_its_cells_and_not_on_a_finer_tree():
    x, y, z = pb.coordinates("x y z")
    u = pb.field("u", x, y, z)
    angle = pb.Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1)])
    polar = sp.atan2(y + x, y - x)  # measured from the middle of the material
    exact = sp.cbrt(x**2 + y**2) * sp.cos(sp.Rational(2, 3) * polar) + z * (1 + x)
    prism = pb.Extrusion(angle, (z, 0, 1))
    solution = pb.solve(pb.Problem(sp.Eq(pb.laplacian(u), 0), prism, [pb.Dirichlet(u, exact)], exact=exact), tol=0.01)
    assert solution.status == "converged"
    assert solution.diagnostics.settings["cells"] == solution.diagnostics.stages[-1].cells == 24
    assert solution.true_error() < solution.error_estimate < min(0.01, 5.0 * solution.true_error())
    assert solution.diagnostics.operations < 0.3 * RATE  # a finer tree costs twice that
