"""Points where materials meet: powers of the distance by the coefficients around them, found with the rest."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Layout, TreeDomain, draw_reference, powers

R = sp.Rational
x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
SQUARE = pb.Rectangle((x, -1, 1), (y, -1, 1))
WEAK = (5.8284271247461907, 0.5, -2.3561944901923448)
STRONG = (161.4476387975881, 0.1, -14.92256510455152)


def quadrants(ratio, power, shift, point=(0, 0), turn=0):
    """Return a plate of two materials in quarters around a point, with a power of the distance as its solution."""
    c, s = sp.cos(turn), sp.sin(turn)
    p, q = x - point[0], y - point[1]
    p, q = c * p + s * q, c * q - s * p
    angle = sp.Piecewise((sp.atan2(q, p), q >= 0), (sp.atan2(q, p) + 2 * sp.pi, True))
    half, rho = sp.pi / 2, sp.pi / 4
    quarters = (
        (sp.cos((half - shift) * power) * sp.cos((angle - half + rho) * power), sp.And(p >= 0, q >= 0)),
        (sp.cos(rho * power) * sp.cos((angle - sp.pi + shift) * power), sp.And(p < 0, q >= 0)),
        (sp.cos(shift * power) * sp.cos((angle - sp.pi - rho) * power), sp.And(p < 0, q < 0)),
        (sp.cos((half - rho) * power) * sp.cos((angle - 3 * half - shift) * power), True),
    )
    exact = sp.sqrt(p**2 + q**2) ** power * sp.Piecewise(*quarters)
    k = sp.Piecewise((ratio, sp.Or(sp.And(p > 0, q > 0), sp.And(p < 0, q < 0))), (1, True))
    return pb.Problem(sp.Eq(-pb.div(k * pb.grad(u)), 0), SQUARE, [pb.Dirichlet(u, exact)], exact=exact)


WEAK_AT_ORIGIN, STRONG_ANYWHERE = quadrants(*WEAK), quadrants(*STRONG, point=(R(13, 100), -R(7, 100)), turn=R(3, 10))


@pytest.mark.parametrize(("problem", "tol"), [(WEAK_AT_ORIGIN, 1e-5), (STRONG_ANYWHERE, 1e-3)])
def test_four_quarters_around_a_point(problem, tol):
    solution = pb.solve(problem, tol=tol)
    error = solution.true_error(20_000)
    assert solution.status == "converged"
    assert error < 3 * max(tol, solution.error_estimate)
    assert error < 10 * solution.error_estimate
    assert len(solution.network.centers) < 500


def test_powers_of_a_wedge():
    # Functions that are even or odd about the middle of a wedge: tan or cotangent on both sides, by the coefficients.
    width, ratio = 1.2, 7.0
    found = [power for power, _ in powers([width, 2 * np.pi - width], [ratio, 1.0], 2.5)]
    for power in found:
        one, two = np.tan(power * width / 2), np.tan(power * (np.pi - width / 2))
        assert min(abs(ratio * one + two), abs(ratio * two + one)) < 1e-6 * (1 + abs(one) + abs(two))
    assert len(found) == 4
    assert list(powers([1.0, 2 * np.pi - 1], [3.0, 3.0], 2.5)) == []


def test_amplitudes_make_values_and_fluxes_continuous():
    widths, coefficients = [1.0, 2.0, 2 * np.pi - 3.0], [1.0, 20.0, 3.0]
    for power, amplitudes in powers(widths, coefficients, 2.0):
        for k, width in enumerate(widths):
            after = (k + 1) % 3
            turned = amplitudes[k] * np.exp(1j * power * width)
            assert turned.real == pytest.approx(amplitudes[after].real, abs=1e-9)
            fluxes = [-a * z.imag for a, z in ((coefficients[k], turned), (coefficients[after], amplitudes[after]))]
            assert fluxes[0] == pytest.approx(fluxes[1], abs=1e-8)


def test_corners_of_a_region_of_another_material():
    triangle = pb.Polygon((x, y), [(-0.5, -0.4), (0.6, -0.3), (0, 0.6)])
    k = pb.per_region({triangle: 10}, 1)
    problem = pb.Problem(sp.Eq(-pb.div(k * pb.grad(u)), 1), SQUARE, [pb.Dirichlet(u, 0)])
    layout = Layout(problem, draw_reference(2, 9, 0))
    assert sorted(round(float(c.exponents[0]), 3) for c in layout.tree_domain.corner_singularities) == [
        0.697,
        0.698,
        0.699,
    ]
    solution = pb.solve(problem, tol=1e-5)
    assert solution.status == "converged"
    # Found with functions of degree 9 and of degree 13 on different trees.
    assert solution([[0.1, 0.1], [0.5, 0.5]]) == pytest.approx([0.24459924, 0.17646370], rel=1e-5)


def test_curved_regions_have_no_such_points():
    k = pb.per_region({pb.Disk((x, y), (0, 0), 0.5): 10}, 1)
    problem = pb.Problem(sp.Eq(-pb.div(k * pb.grad(u)), 1), SQUARE, [pb.Dirichlet(u, 0)])
    assert TreeDomain(problem).corner_singularities == ()
