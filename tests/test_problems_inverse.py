"""The inverse zoo: truth and data against the equations, and against a second way to compute them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from numpy.polynomial import chebyshev
from scipy.integrate import solve_bvp
from scipy.optimize import minimize_scalar

import pibls as pb
from internals import gaussian_plate, layered_head
from pibls.problems import inverse
from pibls.text import read_text
from test_problems_residuals import defects

CATALOGUE = inverse.catalogue()
PROBLEMS = {name: build() for name, build in CATALOGUE.items()}
WITH_EXACT = [name for name, problem in PROBLEMS.items() if problem.exact is not None]


def at(problem, values, *, exact=None):
    """Return the problem with numbers and functions for its unknowns, and without its data."""
    known = {symbol: values[symbol.name] for symbol in problem.parameters}
    known |= {call: values[call.label] for call in problem.unknown_functions}
    equations = [equation.xreplace(known) for equation in problem.equations]
    conditions = []
    for condition in problem.conditions:
        if isinstance(condition, pb.Condition):
            equation = condition.equation.xreplace(known)
            # What is left of a condition on an unknown function says nothing about the fields.
            if sp.sympify(equation).has(*problem.fields):
                conditions.append(pb.Condition(equation, condition.on))
        elif not isinstance(condition, pb.Observation):
            conditions.append(condition)
    return pb.Problem(equations, problem.domain, conditions, exact)


def observations(problem):
    return [condition for condition in problem.conditions if isinstance(condition, pb.Observation)]


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_unknown_has_a_truth(name):
    problem = PROBLEMS[name]
    unknowns = {s.name for s in problem.parameters} | {f.label for f in problem.unknown_functions}
    assert set(problem.truth) == unknowns
    for symbol in problem.parameters:
        low, high = symbol.bounds or (None, None)
        assert (-np.inf if low is None else low) < problem.truth[symbol.name] < (np.inf if high is None else high)


@pytest.mark.parametrize("name", WITH_EXACT)
def test_the_exact_solution_satisfies_the_problem_at_the_truth(name):
    problem = PROBLEMS[name]
    exact = {label: value for label, value in problem.exact.items() if label not in problem.truth}
    assert max(defects(at(problem, problem.truth, exact=exact)).values()) < 1e-9
    for condition in observations(problem):
        assert np.abs(problem.exact_values(condition.points)[condition.u.label] - condition.values).max() < 1e-12


@pytest.mark.parametrize("name", CATALOGUE)
def test_noise_is_that_of_the_seed(name):
    quiet, noisy, again, other = (CATALOGUE[name](*call) for call in ((0.0, 0), (0.01, 1), (0.01, 1), (0.01, 2)))
    clean = np.concatenate([c.values for c in observations(quiet)])
    first, second, third = (np.concatenate([c.values for c in observations(p)]) for p in (noisy, again, other))
    assert all(c.noise is None for c in observations(quiet))
    assert all((c.noise == 0.01).all() for c in observations(noisy))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)
    size = np.sqrt(np.mean((first - clean) ** 2)) / 0.01
    assert abs(size - 1) < 4 / np.sqrt(2 * len(clean))  # four standard deviations of that estimate


@pytest.mark.parametrize("noise", [-1.0, np.nan, "a"])
def test_noise_that_is_none_is_refused(noise):
    with pytest.raises(pb.PiblsError, match="noise"):
        inverse.heat_diffusivity(noise)


def test_sensors_have_noise_of_their_own():
    quiet, noisy = inverse.lorenz_parameters(), inverse.lorenz_parameters(0.01)
    rests = [b.values - a.values for a, b in zip(observations(quiet), observations(noisy), strict=True)]
    assert np.abs(np.corrcoef(rests) - np.eye(3)).max() < 0.8


@pytest.mark.parametrize("name", [n for n, p in PROBLEMS.items() if len(observations(p)[0].values) <= 50])
def test_they_can_be_written_as_text(name):
    problem = PROBLEMS[name]
    assert str(read_text(problem.to_text()).problem) == str(problem)


def test_rates_against_a_solver_of_boundary_value_problems():
    (data,) = observations(inverse.rate_function())

    def right(x, s):
        rate = 0.1 + np.exp(-((x - 0.5) ** 2) / 0.045)
        return np.stack([s[1], 100 * (np.sin(2 * np.pi * x) + rate * s[0])])

    mesh = np.linspace(0, 1, 400)
    found = solve_bvp(right, lambda a, b: np.array([a[0], b[0]]), mesh, np.zeros((2, 400)), tol=1e-9, max_nodes=50_000)
    assert np.abs(found.sol(data.points[:, 0])[0] - data.values).max() < 1e-8


def test_the_plate_against_a_series_of_sines():
    (data,) = observations(inverse.source_position())
    n = np.arange(1, 601)
    nodes, weights = np.polynomial.legendre.leggauss(1200)
    nodes, weights = (nodes + 1) / 2, weights / 2
    waves = np.sin(np.pi * np.outer(n, nodes))
    across, along = (2 * waves @ (weights * np.exp(-10 * (nodes - s) ** 2)) for s in (0.4, 0.6))
    sizes = np.outer(across, along) / (np.pi**2 * (n[:, None] ** 2 + n**2))
    one, two = (np.sin(np.pi * np.outer(column, n)) for column in data.points.T)
    assert np.abs(np.einsum("pi,ij,pj->p", one, sizes, two) - data.values).max() < 1e-8
    assert np.abs(gaussian_plate((0.4, 0.6), 0.1, data.points, n=60) - data.values).max() < 1e-8


def test_lorenz_against_taylor_series():
    """Coefficients of the series by recurrence, in steps of 1/100 with 25 terms."""
    data = observations(inverse.lorenz_parameters())
    state, path, order, h = np.array([-8.0, 7.0, 27.0]), [], 25, 0.01
    for _ in range(300):
        c = np.zeros((3, order + 1))
        c[:, 0] = state
        for k in range(order):
            xz, xy = (c[0, : k + 1] @ c[i, k::-1] for i in (2, 1))
            c[:, k + 1] = [10 * (c[1, k] - c[0, k]), 15 * c[0, k] - xz - c[1, k], xy - 8 / 3 * c[2, k]]
            c[:, k + 1] /= k + 1
        state = c @ h ** np.arange(order + 1)
        path.append(state)
    found = np.array(path)[11::12].T
    assert np.abs(found - np.stack([d.values for d in data])).max() < 1e-9


def test_burgers_against_gauss_and_hermite():
    """The integrals of Cole and Hopf by another rule, as Basdevant and others (1986) give it."""
    (data,) = observations(inverse.burgers_coefficients())
    rows = np.flatnonzero(data.points[:, 1] > 0.05)[:40]
    x, t = data.points[rows].T
    nu = 0.01 / np.pi
    nodes, weights = np.polynomial.hermite.hermgauss(220)
    where = np.pi * (x[:, None] - np.sqrt(4 * nu * t)[:, None] * nodes)
    size = -np.cos(where) / (2 * np.pi * nu)
    factor = weights * np.exp(size - size.max(axis=1, keepdims=True))
    found = -(factor * np.sin(where)).sum(axis=1) / factor.sum(axis=1)
    assert np.abs(found - data.values[rows]).max() < 1e-7


def test_water_flows_on_between_layers():
    x, y = pb.coordinates("x y")
    head = layered_head(x, y, 1, 10, sp.Rational(2, 5))
    ((lower, _), (upper, _)) = next(iter(head.atoms(sp.Piecewise))).args
    level = {y: sp.Rational(2, 5)}
    assert abs(float((lower - upper).subs(level))) < 1e-12
    assert abs(float((lower.diff(y) - 10 * upper.diff(y)).subs(level))) < 1e-12


def moved(truth, problem, direction, step):
    """Return unknowns a step along a direction; positive ones by factors."""
    positive = {symbol.name for symbol in problem.parameters if symbol.positive}
    return {
        name: value * np.exp(step * direction.get(name, 0.0))
        if name in positive
        else value + step * direction.get(name, 0.0)
        for name, value in truth.items()
    }


def answers(problem, values):
    """Return what a solution of the problem with known numbers has at the points of the data."""
    solution = pb.solve(at(problem, values), tol=1e-6)
    (data,) = observations(problem)
    found = solution(data.points)
    return found["u"] if isinstance(found, dict) else found


@pytest.mark.parametrize("name", inverse.unidentifiable())
def test_data_do_not_change_along_the_open_direction(name):
    case = inverse.unidentifiable()[name]
    problem = case.problem(0)
    truth = problem.truth
    assert np.linalg.norm(list(case.direction.values())) == pytest.approx(1.0)
    (data,) = observations(problem)
    here = answers(problem, truth)
    assert np.abs(here - data.values).max() < 5e-3  # noise of 1e-3
    assert np.abs(answers(problem, moved(truth, problem, case.direction, 0.7)) - here).max() < 1e-5
    across = {name: 1.0 for name in truth if name not in case.direction} or dict.fromkeys(truth, 1.0)
    if len(truth) > 1:
        assert np.abs(answers(problem, moved(truth, problem, across, 0.7)) - here).max() > 1e-2


def best_misfit(problem, model, low, high):
    """Return the mean square of the misfit in units of the noise, at the best value of the only unknown."""
    (data,) = observations(problem)
    found = minimize_scalar(
        lambda k: np.mean(((model(k, data.points) - data.values) / data.noise) ** 2),
        bounds=(low, high),
        method="bounded",
    )
    return found.fun


def test_wrong_models_are_wrong_by_far():
    x, y = pb.coordinates("x y")
    wrong = inverse.wrong_models()
    head = sp.lambdify((x, y), layered_head(x, y, 1, 1, sp.Rational(2, 5)))
    models = {
        "missing_sink": (lambda k, X: sum(np.exp(-(n**2) * k * X[:, 1]) * np.sin(n * X[:, 0]) for n in (1, 3)), 0, 9),
        "missing_damping": (lambda k, X: np.cos(np.sqrt(k) * X[:, 0]), 3, 5),
        "one_layer": (lambda k, X: head(*X.T) / k, 0.1, 100),
    }
    assert set(models) == set(wrong)
    for name, model in models.items():
        assert best_misfit(wrong[name](0), *model) > 100


def test_the_wake_is_a_flow_of_its_viscosity():
    """Fit polynomials without divergence to the velocities; their vorticity then tells both coefficients."""
    u, v = observations(inverse.cylinder_wake())
    sizes = np.array([1.0, 1.0, 0.75])
    X = (u.points - [2.0, 0.0, 0.75]) / sizes
    powers = np.array([p for p in np.ndindex(15, 15, 6) if 0 < p[0] + p[1] <= 14])

    def stream(*order):
        """Return a derivative of every product of Chebyshev's polynomials."""
        result = np.ones((len(X), len(powers)))
        for axis, k in enumerate(order):
            slopes = chebyshev.chebder(np.eye(15), k)
            result *= (chebyshev.chebvander(X[:, axis], 14 - k) @ slopes)[:, powers[:, axis]] / sizes[axis] ** k
        return result

    matrix, values = np.concatenate([stream(0, 1, 0), -stream(1, 0, 0)]), np.concatenate([u.values, v.values])
    weights = np.linalg.lstsq(matrix, values, rcond=1e-13)[0]
    assert np.sqrt(np.mean((matrix @ weights - values) ** 2)) < 2e-3

    def vorticity(i, j, k):
        return -(stream(i + 2, j, k) + stream(i, j + 2, k)) @ weights

    inner = np.abs(X).max(axis=1) < 0.8  # polynomials are poor at the edges
    carried = u.values * vorticity(1, 0, 0) + v.values * vorticity(0, 1, 0)
    spread = vorticity(2, 0, 0) + vorticity(0, 2, 0)
    found = np.linalg.lstsq(np.stack([-carried, spread], axis=1)[inner], vorticity(0, 0, 1)[inner], rcond=None)[0]
    assert found == pytest.approx([1.0, 0.01], rel=0.1)


def models():
    path = Path(__file__).parent.parent / "benchmarks" / "inverse_models.py"
    spec = importlib.util.spec_from_file_location("inverse_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODELS = models()


@pytest.mark.parametrize("name", MODELS.MODELS)
def test_data_are_what_independent_models_read(name):
    problem = PROBLEMS[name]
    found = MODELS.readings(name, problem.truth)
    assert np.abs(found - np.concatenate([data.values for data in observations(problem)])).max() < 1e-8


def test_the_bound_of_an_amplitude():
    """The strength of a source with all else known: noise over the norm of what it multiplies; more unknowns, more."""
    found = MODELS.bound("source_position", 1e-3)
    (data,) = observations(inverse.source_position())
    assert found["q"] >= 1e-3 / np.linalg.norm(data.values)
    assert MODELS.bound("source_position", 2e-3)["s_x"] == pytest.approx(2 * found["s_x"])
