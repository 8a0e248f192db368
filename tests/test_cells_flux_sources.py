"""Fluxes are continuous with all their terms: sources and laws that differ between materials bend solutions."""

from __future__ import annotations

import pytest
import sympy as sp

import pibls as pb

x, y, t = pb.coordinates("x y t")
HALF = sp.Rational(1, 2)


def halves(left, right, at=x):
    return sp.Piecewise((left, at < HALF), (right, True))


def bent(one, two):
    """Slopes of a field that is zero at both ends, with k u' + q = c, k = (one, two) and q = (1, 0)."""
    c = sp.Symbol("c")
    total = sp.solve((c - 1) / one + c / two, c)[0]
    first, second = (total - 1) / one, total / two
    return halves(first * x, first * HALF + second * (x - HALF))


def on_line(one, two):
    u = pb.field("u", x)
    flux = halves(one, two) * u.diff(x) + halves(1, 0)
    return pb.Problem(sp.Eq(pb.div([flux]), 0), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)], exact=bent(one, two))


def on_square(one, two):
    u, k, exact = pb.field("u", x, y), halves(one, two), bent(one, two)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    flux = [k * u.diff(x) + halves(1, 0), k * u.diff(y)]
    return pb.Problem(sp.Eq(pb.div(flux), 0), square, [pb.Dirichlet(u, exact)], exact=exact)


def magnet(one, two):
    """A disk that is magnetised along x, inside a larger one."""
    u, inside = pb.field("u", x, y), pb.Disk((x, y), (0, 0), HALF)
    k, square = pb.per_region({inside: one}, two), x**2 + y**2
    a, b, c = sp.symbols("a b c")
    found = sp.solve([b + c, a - b - 4 * c, one * a + 1 - two * (b - 4 * c)], [a, b, c])
    exact = sp.Piecewise((found[a] * x, square < sp.Rational(1, 4)), ((found[b] + found[c] / square) * x, True))
    flux = [k * u.diff(x) + pb.per_region({inside: 1}, 0), k * u.diff(y)]
    return pb.Problem(sp.Eq(pb.div(flux), 0), pb.Disk((x, y), (0, 0), 1), [pb.Dirichlet(u, 0)], exact=exact)


@pytest.mark.parametrize("kind", [on_line, on_square, magnet], ids=lambda own: own.__name__)
@pytest.mark.parametrize("materials", [(1, 1), (2, 1)], ids=["source jumps", "both jump"])
def test_a_source_that_jumps_inside_a_flux_bends_the_solution(kind, materials):
    solution = pb.solve(kind(*materials), tol=1e-4)
    assert solution.status == "converged"
    assert solution.true_error() < 3e-4


def test_it_does_so_in_time():
    u, exact = pb.field("u", x, t), bent(2, 1)
    flux = halves(2, 1) * u.diff(x) + halves(1, 0)
    domain = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    conditions = [pb.Dirichlet(u, 0), pb.Initial(u, exact)]
    solution = pb.solve(pb.Problem(sp.Eq(u.diff(t), pb.div([flux])), domain, conditions, exact=exact), tol=1e-4)
    assert solution.status == "converged"
    assert solution.true_error() < 3e-4


def test_materials_with_different_laws_share_their_flux():
    u, line = pb.field("u", x), pb.Interval((x, 0, 1))
    c = sp.Symbol("c", positive=True)
    # The flux c is (1 + u) u' on the left, and 3 u' on the right.
    total = sp.nsolve(sp.sqrt(1 + c) + c / 6 - 2, c, 2)
    exact = halves(sp.sqrt(1 + 2 * total * x) - 1, sp.sqrt(1 + total) - 1 + total / 3 * (x - HALF))
    flux = halves(1 + u, 3) * u.diff(x)
    conditions = [pb.Dirichlet(u, 0, on=line.left), pb.Dirichlet(u, 1, on=line.right)]
    solution = pb.solve(pb.Problem(sp.Eq(pb.div([flux]), 0), line, conditions, exact=exact), tol=1e-4)
    assert solution.status == "converged"
    assert solution.true_error() < 3e-4


def test_a_conserved_field_of_first_order_keeps_its_flux_and_not_its_value():
    w, line = pb.field("w", x), pb.Interval((x, 0, 1))
    exact = halves(sp.exp(-x / 2), 4 * sp.exp(-sp.Rational(1, 4) - 2 * (x - HALF)))
    equation = sp.Eq(pb.div([halves(2, HALF) * w]), -w)
    solution = pb.solve(pb.Problem(equation, line, [pb.Dirichlet(w, 1, on=line.left)], exact=exact), tol=1e-6)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_so_does_one_that_is_carried_along_in_time():
    h, line = pb.field("h", x, t), pb.Interval((x, 0, 1))
    speed = halves(2, HALF)
    exact = halves(
        1 + sp.sin(3 * t - sp.Rational(3, 2) * x) / 2, 4 + 2 * sp.sin(3 * t - sp.Rational(3, 4) - 6 * (x - HALF))
    )
    conditions = [pb.Dirichlet(h, exact.subs(x, 0), on=line.left), pb.Initial(h, exact.subs(t, 0))]
    equation = sp.Eq(h.diff(t) + pb.div([speed * h]), 0)
    solution = pb.solve(pb.Problem(equation, line * pb.TimeInterval(t, 0, 1), conditions, exact=exact), tol=1e-5)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-5
