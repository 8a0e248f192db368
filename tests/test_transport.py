"""Jumps and kinks of data are carried along characteristics with all their digits."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import carried_curves

x, y, t = pb.coordinates("x y t")
u, v = pb.field("u", x, t), pb.field("v", x, y)
HALF, FIFTH = sp.Rational(1, 2), sp.Rational(1, 5)


def line(stop=1.0, until=1.0):
    return pb.Interval((x, 0, stop)) * pb.TimeInterval(t, 0, until)


def error(solution, exact):
    X = solution.problem.domain.sample(2000, seed=5)
    wanted = exact(*X.T)
    return np.linalg.norm(solution(X) - wanted) / np.linalg.norm(wanted)


def pulse(s):
    return 1.0 * ((s > 0.2) & (s < 0.5))


SQUARE = sp.Piecewise((1, (x > FIFTH) & (x < HALF)), (0, True))


def transport(speed, initial, inflow, rest=0, domain=None):
    domain = domain or line(2.0)
    equation = sp.Eq(u.diff(t) + speed * u.diff(x), rest)
    return pb.Problem(equation, domain, [pb.Initial(u, initial), pb.Dirichlet(u, inflow, on=domain.left)])


CARRIED = {
    "pulse": (transport(1, SQUARE, 0), lambda X, T: pulse(X - T)),
    "pulse that decays": (transport(1, SQUARE, 0, -2 * u), lambda X, T: np.exp(-2 * T) * pulse(X - T)),
    "triangle": (
        transport(1, sp.Max(0, 1 - 5 * sp.Abs(x - 2 * FIFTH)), 0),
        lambda X, T: np.maximum(0, 1 - 5 * abs(X - T - 0.4)),
    ),
    "speed that varies": (transport((1 + x) / 2, SQUARE, 0), lambda X, T: pulse((1 + X) * np.exp(-T / 2) - 1)),
    "jump in the corner": (transport(1, 0, 1), lambda X, T: 1.0 * (X < T)),
    "kink in the corner": (transport(1, 0, t), lambda X, T: np.maximum(T - X, 0)),
    "source that switches": (
        transport(1, 0, 0, sp.Heaviside(x - FIFTH)),
        lambda X, T: np.where(X > 0.2, np.minimum(T, X - 0.2), 0),
    ),
}


@pytest.mark.parametrize("name", CARRIED)
def test_a_line_carries_its_data(name):
    problem, exact = CARRIED[name]
    solution = pb.solve(problem, progress=False)
    assert solution.status == "converged"
    assert error(solution, exact) < 1e-7


def test_a_pulse_goes_round_a_periodic_line():
    domain = line(1.0, 1.25)
    problem = pb.Problem(u.diff(t) + u.diff(x), domain, [pb.Initial(u, SQUARE), pb.Periodic(u, x)])
    assert error(pb.solve(problem, progress=False), lambda X, T: pulse((X - T) % 1)) < 1e-7


@pytest.mark.parametrize(
    ("flow", "exact"),
    [
        ((1, HALF), lambda X, Y: 1.0 * (Y - X / 2 < 0.25)),
        ((1, x), lambda X, Y: 1.0 * (Y - X**2 / 2 < 0.25)),
        ((1 + x, y), lambda X, Y: 1.0 * (Y / (1 + X) < 0.25)),
    ],
)
def test_a_steady_flow_carries_a_jump(flow, exact):
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    inflow = [pb.Dirichlet(v, sp.Heaviside(0.25 - y), on=square.left)]
    inflow += [pb.Dirichlet(v, 1, on=square.bottom)] if flow[1] != y else []
    problem = pb.Problem(flow[0] * v.diff(x) + flow[1] * v.diff(y), square, inflow)
    solution = pb.solve(problem, progress=False)
    assert solution.status == "converged"
    assert error(solution, exact) < 1e-9


def test_a_jump_goes_round_a_bend():
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    inflow = [pb.Dirichlet(v, sp.Heaviside(HALF - x), on=square.bottom), pb.Dirichlet(v, 0, on=square.right)]
    solution = pb.solve(pb.Problem(x * v.diff(y) - y * v.diff(x), square, inflow), progress=False)
    assert error(solution, lambda X, Y: 1.0 * (np.hypot(X, Y) < 0.5)) < 1e-9


def test_a_plucked_string_keeps_its_kink():
    domain, kink = line(1.0, HALF), sp.Rational(3, 10)
    shape = sp.Piecewise((x / kink, x < kink), ((1 - x) / (1 - kink), True))
    conditions = [pb.Dirichlet(u, 0), pb.Initial(u, shape), pb.Initial(u.diff(t), 0)]
    solution = pb.solve(pb.Problem(sp.Eq(u.diff(t, 2), u.diff(x, 2)), domain, conditions), progress=False)

    def odd(s):
        s = (s + 1) % 2 - 1
        return np.sign(s) * np.where(abs(s) < 0.3, abs(s) / 0.3, (1 - abs(s)) / 0.7)

    assert error(solution, lambda X, T: (odd(X - T) + odd(X + T)) / 2) < 1e-7


@pytest.mark.parametrize("start", [0.0, 0.2])
def test_a_wave_carries_a_jump_at_its_end(start):
    domain = line()
    ends = [
        pb.Dirichlet(u, sp.Heaviside(t - start) if start else 1, on=domain.left),
        pb.Dirichlet(u, 0, on=domain.right),
    ]
    problem = pb.Problem(sp.Eq(u.diff(t, 2), u.diff(x, 2)), domain, [*ends, pb.Initial(u, 0), pb.Initial(u.diff(t), 0)])
    assert error(pb.solve(problem, progress=False), lambda X, T: 1.0 * (start < T - X)) < 1e-6


def wave(initial, until=1.5, *, end=pb.Dirichlet, speed=1, damping=0):
    equation = sp.Eq(u.diff(t, 2) + 2 * damping * u.diff(t) + damping**2 * u, speed**2 * u.diff(x, 2))
    return pb.Problem(equation, line(1.0, until), [end(u, 0), pb.Initial(u, initial), pb.Initial(u.diff(t), 0)])


def mirrored(start, sign):
    """Return d'Alembert's solution on (0, 1), with images that ends reflect with a sign."""

    def whole(s):
        s = (s + 1) % 2 - 1
        return np.where(s > 0, 1, sign) * start(abs(s))

    return lambda X, T: (whole(X - T) + whole(X + T)) / 2


WAVES = {
    "held where it is not zero": (wave(sp.cos(3 * x)), mirrored(lambda s: np.cos(3 * s), -1)),
    "step between free ends": (wave(SQUARE, 1, end=pb.Neumann), mirrored(pulse, 1)),
    # u = exp(-t) w, and w is a wave that starts with the slope w in time
    "step that decays": (
        wave(sp.Heaviside(x - HALF), sp.Rational(2, 5), end=pb.Neumann, damping=1),
        lambda X, T: np.exp(-T) * (((X - T > 0.5) + 1.0 * (X + T > 0.5)) / 2 + np.clip(X + T - 0.5, 0, 2 * T) / 2),
    ),
}


@pytest.mark.parametrize("name", WAVES)
def test_jumps_of_a_wave_cross_each_other_and_are_reflected(name):
    problem, exact = WAVES[name]
    solution = pb.solve(problem, progress=False)
    assert solution.status == "converged"
    assert error(solution, exact) < 1e-6


def test_a_jump_of_a_wave_grows_with_the_root_of_its_speed():
    curves = carried_curves(wave(sp.Heaviside(x - FIFTH), HALF, speed=1 + x))
    right = next(curve for curve in curves if curve.level.subs({x: 0.5, t: float(sp.log(1.5 / 1.2))}) < 1e-9)
    assert float(right.jump.subs(t, sp.log(1.5 / 1.2))) == pytest.approx(np.sqrt(1.5 / 1.2) / 2, rel=1e-9)


def test_prepared_waves_know_their_own_jumps():
    solution = pb.prepare(wave(sp.cos(3 * x)), tol=1e-2).solve(conditions=wave(1.02 * sp.cos(3 * x)).conditions)
    assert error(solution, mirrored(lambda s: 1.02 * np.cos(3 * s), -1)) < 1e-5


def test_jumps_of_a_wave_follow_unknown_numbers():
    plain, exact, k = wave(sp.cos(3 * x)), WAVES["held where it is not zero"][1], pb.unknown("k", start=1)
    places = plain.domain.sample(30, "kronecker", 3)
    values = 1.3 * exact(*places.T) + 0.01 * np.random.default_rng(1).standard_normal(30)
    seen = pb.Observation(u, places, values, noise=0.01)
    ends = [pb.Dirichlet(u, 0), pb.Initial(u, k * sp.cos(3 * x)), pb.Initial(u.diff(t), 0), seen]
    found = pb.solve(pb.Problem(plain.equations, plain.domain, ends), tol=1e-3).parameters["k"]
    assert abs(found.value - 1.3) < 3 * found.deviation < 0.02


def test_a_carried_jump_is_stored(tmp_path):
    solution = pb.solve(CARRIED["speed that varies"][0], progress=False)
    solution.save(tmp_path / "pulse.pibls")
    X = solution.problem.domain.sample(500, seed=3)
    assert np.array_equal(pb.load(tmp_path / "pulse.pibls")(X), solution(X))
