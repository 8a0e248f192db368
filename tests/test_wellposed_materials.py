"""Fluxes through a boundary at which a material ends are those of the material beside it."""

import pytest
import sympy as sp

import pibls as pb
from pibls import Interval, Mean, Neumann, Problem, Rectangle, coordinates, div, field, grad, per_region

x, y = coordinates("x y")
u, v = field("u", x, y), field("v", x)
HALF = sp.Rational(1, 2)


@pytest.mark.parametrize("low", [0, -1])
@pytest.mark.parametrize(("share", "status"), [(1, "converged"), (sp.Rational(1001, 1000), "ill-posed")])
def test_given_slopes_count_times_the_material_beside_them(low: int, share: sp.Expr, status: str) -> None:
    square = Rectangle((x, 0, 1), (y, 0, 1))
    k = per_region({Rectangle((x, low, HALF), (y, 0, 1)): 3}, otherwise=1)
    conditions = [
        Neumann(u, -share / 3, on=square.left),
        Neumann(u, 1, on=square.right),
        Neumann(u, 0, on=square.bottom | square.top),
        Mean(u, 0),
    ]
    assert pb.solve(Problem(div(k * grad(u)), square, conditions), progress=False).status == status


def test_nonlinear_fluxes_count_times_the_material_beside_them() -> None:
    line = Interval((x, 0, 1))
    k = per_region({Interval((x, 0, HALF)): 3}, otherwise=1)
    flux = k * (1 + v.diff(x) ** 2) * v.diff(x)
    conditions = [Neumann(v, -HALF, on=line.left), Neumann(v, 1, on=line.right), Mean(v, 0)]
    balanced = Problem(sp.Eq(div([flux]), sp.Rational(1, 8)), line, conditions)
    assert pb.solve(balanced, progress=False, tol=1e-4).status == "converged"
    unbalanced = Problem(sp.Eq(div([flux]), sp.Rational(126, 1000)), line, conditions)
    assert "0.125" in pb.solve(unbalanced, progress=False).diagnostics.message


def test_a_nonlinear_flux_of_a_material_may_stand_in_a_condition() -> None:
    square = Rectangle((x, 0, 1), (y, 0, 1))
    k = per_region({Rectangle((x, 0, HALF), (y, 0, 1)): 3}, otherwise=1) * (1 + u**2)
    conditions = [pb.Dirichlet(u, 1, on=square.left), pb.Condition(sp.Eq(pb.flux(u), -(u**4)), on=square.right)]
    problem = Problem(div(k * grad(u)), square, conditions)
    assert "flux(u) = -u**4" in str(problem)
