"""Evolutions whose short waves grow without bound are told, however short the time; what only looks alike is not."""

import pytest
import sympy as sp

import pibls as pb

x, t = pb.coordinates("x t")
u = pb.field("u", x, t)
DOMAIN = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, sp.Rational(1, 10))
WAVE = sp.sin(sp.pi * x)
HELD, START = pb.Dirichlet(u, 0), pb.Initial(u, WAVE)
AT_REST = pb.Initial(u.diff(t), 0)
HINGED = pb.Condition(sp.Eq(u.diff(x, 2), 0))


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
@pytest.mark.parametrize(
    ("rate", "conditions"),
    [
        (sp.Eq(u.diff(t), -u.diff(x, 2)), [HELD, START]),
        (sp.Eq(u.diff(t, 2), -u.diff(x, 2)), [HELD, START, AT_REST]),
        (sp.Eq(u.diff(t), u.diff(x, 4)), [HELD, HINGED, START]),
    ],
)
def test_what_runs_away_is_told(rate, conditions, tol):
    solution = pb.solve(pb.Problem(rate, DOMAIN, conditions), tol=tol)
    assert solution.status == "ill-posed"
    assert "the shorter they are" in solution.diagnostics.message or "unstable" in solution.diagnostics.message


@pytest.mark.parametrize(
    ("rate", "conditions"),
    [
        (sp.Eq(u.diff(t), -u.diff(x, 2)), [HELD, pb.Dirichlet(u, WAVE, on=DOMAIN.final)]),
        (sp.Eq(u.diff(t, 2), -u.diff(x, 2)), [HELD, START, pb.Dirichlet(u, 0, on=DOMAIN.final)]),
        (sp.Eq(u.diff(t), -u.diff(x, 2) - u.diff(x, 4) / 100), [HELD, HINGED, START]),
        (sp.Eq(u.diff(t, 2), -u.diff(x, 4)), [HELD, HINGED, START, AT_REST]),
        (sp.Eq(u.diff(t), 100 * u), [START]),
    ],
)
def test_what_only_looks_alike_is_solved(rate, conditions):
    assert pb.solve(pb.Problem(rate, DOMAIN, conditions), tol=1e-4).status == "converged"
