"""Linear transport along straight characteristics, beside formulas."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import transport_of

x, y, t = pb.coordinates("x y t")
u, v = pb.field("u", x, t), pb.field("v", x, y)
LINE = pb.Interval((x, 0, 2)) * pb.TimeInterval(t, 0, 1)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
PULSE = sp.exp(-((1000 * (x - sp.Rational(3, 10))) ** 2))


def error(solution, exact):
    X = np.random.default_rng(3).uniform(*solution.problem.domain.bounds.T, (200_000, 2))
    wanted = exact(*X.T)
    return np.linalg.norm(solution(X) - wanted) / np.linalg.norm(wanted)


def test_a_pulse_of_a_thousandth_is_carried():
    problem = pb.Problem(u.diff(t) + u.diff(x) / 2, LINE, [pb.Initial(u, PULSE), pb.Dirichlet(u, 0, on=LINE.left)])
    solution = pb.solve(problem, tol=1e-4, progress=False)
    assert solution.status == "converged"
    assert error(solution, lambda X, T: np.exp(-((1000 * (X - T / 2 - 0.3)) ** 2))) < 1e-4


def test_a_pulse_that_enters_decays_on_its_way():
    entering = sp.exp(-((300 * (t - sp.Rational(1, 5))) ** 2))
    given = [pb.Initial(u, 0), pb.Dirichlet(u, entering, on=LINE.right)]
    solution = pb.solve(pb.Problem(u.diff(t) - 3 * u.diff(x) + 2 * u, LINE, given), tol=1e-4, progress=False)
    assert solution.status == "converged"

    def exact(X, T):
        since = (2 - X) / 3
        return np.exp(-((300 * (T - since - 0.2)) ** 2) - 2 * since)

    assert error(solution, exact) < 1e-4


@pytest.mark.parametrize("sign", [1, -1])
def test_a_steady_flow_is_followed_from_where_it_enters(sign):
    given = [pb.Dirichlet(v, sp.sin(9 * y), on=SQUARE.left), pb.Dirichlet(v, 0, on=SQUARE.bottom)]
    solution = pb.solve(pb.Problem(sign * (2 * v.diff(x) + v.diff(y)), SQUARE, given), progress=False)
    assert solution.status == "converged"
    assert error(solution, lambda X, Y: np.where(Y > X / 2, np.sin(9 * (Y - X / 2)), 0)) < 1e-6


@pytest.mark.parametrize(
    ("equation", "ends"),
    [
        (u.diff(t) + u.diff(x), []),
        (u.diff(t) + u.diff(x), ["left", "right"]),
        (u.diff(t) + u.diff(x), ["right"]),
        (u.diff(t) + x * u.diff(x), ["left"]),
        (u.diff(t) + u.diff(x) - 1, ["left"]),
        (u.diff(t) + u.diff(x) + u**2, ["left"]),
        (u.diff(t) - u.diff(x, 2), ["left", "right"]),
    ],
)
def test_other_problems_are_left_to_cells(equation, ends):
    given = [pb.Dirichlet(u, 0, on=getattr(LINE, end)) for end in ends]
    assert transport_of(pb.Problem(equation, LINE, [pb.Initial(u, x), *given])) is None


def test_what_goes_round_a_period_is_left_to_lines():
    assert transport_of(pb.Problem(u.diff(t) + 3 * u.diff(x), LINE, [pb.Initial(u, PULSE), pb.Periodic(u, x)])) is None
