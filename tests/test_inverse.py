"""Unknown numbers and functions from measurements: values, intervals, and what data do not tell."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.special import ndtri

import pibls as pb
from internals import (
    CellForward,
    Cosines,
    EvolutionForward,
    LinearisedData,
    Parametric,
    Place,
    Smoothness,
    fixed,
    most_probable,
    predicted,
)
from internals import problems_values_of as values_of
from pibls.budget import Budget
from pibls.errors import InputError, ProblemError
from pibls.problems import inverse

X, T = pb.coordinates("x t")
U = pb.field("u", X)
LINE = pb.Interval((X, 0, 1))
PLACES = np.linspace(0.1, 0.9, 9)
SHAPE = PLACES * (1 - PLACES) / 2  # the solution of −u″ = 1 there


def rod(strength, values, *others, places=PLACES, **settings):
    """−u″ = strength, u = 0 at the ends, measured at nine places."""
    observed = pb.Observation(U, {X: places}, values, **settings)
    return pb.Problem(-U.diff(X, 2) - strength, LINE, [pb.Dirichlet(U, 0), observed, *others])


def noise(seed, size):
    return size * np.random.default_rng(seed).standard_normal(len(PLACES))


@pytest.mark.parametrize("name", ["heat_diffusivity", "brinkman_forchheimer", "robin_coefficient"])
def test_numbers_are_exact_without_noise(name):
    problem = getattr(inverse, name)()
    found = pb.solve(problem)
    assert found.status == "converged"
    for key, value in problem.truth.items():
        assert abs(found.parameters[key].value / value - 1) < 1e-8
        low, high = found.parameters[key].interval
        assert low < found.parameters[key].value < high


def heat(k):
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    line = pb.Interval((x, 0, 1))
    where = np.column_stack([PLACES, np.linspace(0.2, 1.0, 9)])
    values = np.sin(np.pi * where[:, 0]) * np.exp(-0.1 * np.pi**2 * where[:, 1])
    conditions = [pb.Dirichlet(u, 0), pb.Initial(u, sp.sin(sp.pi * x)), pb.Observation(u, where, values, noise=0.01)]
    return pb.Problem(u.diff(t) - k * u.diff(x, 2), line * pb.TimeInterval(t, 0, 1), conditions), where, values


def test_answers_on_cells_are_derivatives():
    problem, where, _ = heat(pb.unknown("k"))
    parametric, vector = Parametric(problem), np.array([0.15])
    forward = CellForward.around(parametric, np.array([0.1]), 1e-9, Budget(10.0), 0, None)
    found = predicted(parametric, parametric.observations[0], forward.respond(vector), vector)
    values = np.sin(np.pi * where[:, 0]) * np.exp(-0.15 * np.pi**2 * where[:, 1])
    assert np.abs(found.values - values).max() < 1e-8
    assert np.abs(found.slopes[:, 0] + np.pi**2 * where[:, 1] * values).max() < 1e-7


def test_answers_after_a_long_step_are_those_there():
    """Of −k u″ = 1, u = x (1 − x) / 2k: three times k makes answers nine times as small."""
    k = pb.unknown("k", bounds=(0, None))
    stated = pb.Problem(-k * U.diff(X, 2) - 1, LINE, [pb.Dirichlet(U, 0), pb.Observation(U, {X: PLACES}, SHAPE)])
    parametric = Parametric(stated)
    forward = CellForward.around(parametric, np.array([1.0]), 1e-9, Budget(10.0), 0, None)
    there = forward.respond(np.array([3.0]), forward.respond(np.array([1.0])))
    found = predicted(parametric, parametric.observations[0], there, np.array([3.0]))
    assert found.slopes[:, 0] == pytest.approx(-SHAPE / 9, rel=1e-6)


@pytest.mark.parametrize(
    ("strength", "separable", "affine"),
    [
        (lambda q, _: q * sp.sin(3 * X), True, True),
        (lambda q, _: sp.exp(-((X - q) ** 2)), True, False),
        (lambda q, _: q * U, False, False),
        (lambda q, a: q + a, True, True),
        (lambda q, a: q * a, True, False),
        (lambda q, a: a * U, False, False),
    ],
)
def test_unknowns_in_sources_alone_are_told_from_others(strength, separable, affine):
    q, a = pb.unknown("q", start=0.4), pb.field("a", X, prior=pb.Smooth())
    problem = rod(strength(q, a), SHAPE)
    found = Parametric(problem, tuple(Cosines.of(f, problem.domain) for f in problem.unknown_functions))
    assert (found.is_separable, found.is_affine) == (separable, affine)


@pytest.mark.parametrize("strength", [lambda q: q * sp.sin(3 * X), lambda q: sp.exp(-((X - q) ** 2))])
def test_sensitivities_to_sources_are_the_same_from_nearby_and_from_afar(strength):
    """Factors do not depend on such unknowns, so that no elimination, or one, makes a response."""
    parametric, near, far = Parametric(rod(strength(pb.unknown("q")), SHAPE)), np.array([0.2]), np.array([1.7])
    forward = CellForward.around(parametric, near, 1e-10, Budget(10.0), 0, None)
    one, two = forward.respond(far), forward.respond(far, forward.respond(near))
    one, two = (predicted(parametric, parametric.observations[0], own, far) for own in (one, two))
    assert two.values == pytest.approx(one.values, abs=1e-11)
    assert two.slopes == pytest.approx(one.slopes, abs=1e-10)


def test_answers_by_lines_are_derivatives():
    t = pb.coordinates("t")
    y, k = pb.field("y", t), pb.unknown("k")
    times = np.linspace(0.2, 2.0, 6)
    conditions = [pb.Initial(y, 1), pb.Observation(y, times[:, None], times)]
    problem = pb.Problem(y.diff(t) + k * y**2, pb.TimeInterval(t, 0, 2), conditions)
    parametric, vector = Parametric(problem), np.array([0.7])
    forward = EvolutionForward.around(parametric, np.array([0.5]), 1e-8, Budget(10.0), 0, np.ones(1))
    found = predicted(parametric, parametric.observations[0], forward.respond(vector), vector)
    assert np.abs(found.values - 1 / (1 + 0.7 * times)).max() < 1e-8
    assert np.abs(found.slopes[:, 0] + times / (1 + 0.7 * times) ** 2).max() < 1e-5


def test_answers_of_nonlinear_evolutions_are_exact():
    """Of u′ = r u (1 − u/K), u(0) = a: closed forms, and v′ = u for a system."""
    u, v = pb.field("u", T), pb.field("v", T)
    rate, most, first = (pb.unknown(name) for name in ("r", "K", "a"))
    times, numbers = np.linspace(0.3, 5.0, 7), np.array([2.0, 0.1, 1.3])  # in the order of names: K, a, r

    def path(K, a, r):
        return K / (1 + (K / a - 1) * np.exp(-r * times)), K / r * np.log(1 + a / K * (np.exp(r * times) - 1))

    observed = [pb.Observation(own, times[:, None], times) for own in (u, v)]
    conditions = [pb.Initial(u, first), pb.Initial(v, 0), *observed]
    equations = [u.diff(T) - rate * u * (1 - u / most), v.diff(T) - u]
    parametric = Parametric(pb.Problem(equations, pb.TimeInterval(T, 0, 5), conditions))
    forward = EvolutionForward.around(parametric, numbers, 1e-9, Budget(10.0), 0, np.ones(3))
    response = forward.respond(numbers)
    for number, observation in enumerate(parametric.observations):
        found = predicted(parametric, observation, response, numbers)
        assert found.values == pytest.approx(path(*numbers)[number], abs=1e-9)
        for i, step in enumerate(1e-30 * np.eye(3)):
            slope = path(*(numbers + 1j * step))[number].imag / 1e-30
            assert found.slopes[:, i] == pytest.approx(slope, abs=1e-7 * np.abs(slope).max())


def test_answers_to_a_boundary_value_that_is_nearly_nothing():
    """Of u_t = u_xx with u = ct at both ends: differences by shares of c = 10⁻¹⁴ are rounding."""
    x, t = pb.coordinates("x t")
    u, c = pb.field("u", x, t), pb.unknown("c")
    where = np.column_stack([PLACES, np.full(9, 0.3)])
    conditions = [pb.Dirichlet(u, c * t), pb.Initial(u, sp.sin(sp.pi * x)), pb.Observation(u, where, PLACES)]
    parametric = Parametric(pb.Problem(u.diff(t) - u.diff(x, 2), LINE * pb.TimeInterval(t, 0, 0.3), conditions))
    nearly = np.array([1e-14])
    forward = EvolutionForward.around(parametric, nearly, 1e-6, Budget(10.0), 0, np.ones(1))
    found = predicted(parametric, parametric.observations[0], forward.respond(nearly), nearly)
    fading = 4 / np.pi**3 * np.sin(np.pi * PLACES) * np.exp(-0.3 * np.pi**2)
    assert found.slopes[:, 0] == pytest.approx(0.3 - SHAPE + fading, abs=1e-4)


def test_answers_to_a_coefficient_of_a_boundary_condition_are_differences_of_solutions():
    """With another coefficient, other functions keep the condition: whole runs are compared then."""
    x, t = pb.coordinates("x t")
    u, h = pb.field("u", x, t), pb.unknown("h", bounds=(0, None))
    where = np.column_stack([PLACES, np.full(9, 0.2)])
    end = pb.Condition(sp.Eq(u.diff(x) + h * u, 0), on=LINE.right)
    conditions = [pb.Dirichlet(u, 1, on=LINE.left), end, pb.Initial(u, 1), pb.Observation(u, where, PLACES)]
    problem = pb.Problem(u.diff(t) - u.diff(x, 2), LINE * pb.TimeInterval(t, 0, 0.2), conditions)
    parametric, step = Parametric(problem), 1e-3
    forward = EvolutionForward.around(parametric, np.ones(1), 1e-6, Budget(10.0), 0, np.ones(1))
    low, here, high = (
        predicted(parametric, parametric.observations[0], forward.respond(own), own)
        for own in (np.array([1.0 - step]), np.ones(1), np.array([1.0 + step]))
    )
    assert here.slopes[:, 0] == pytest.approx((high.values - low.values) / (2 * step), abs=1e-4)
    assert np.abs(here.slopes).max() > 0.1


def test_answers_of_linear_evolutions_are_exact():
    """Of c u″ + k u = 0: cos ωt with ω² = k/c, and an unknown that multiplies the highest derivative."""
    u, c, k = pb.field("u", T), pb.unknown("c"), pb.unknown("k")
    times, numbers = np.linspace(0.3, 3.0, 7), np.array([2.0, 8.0])
    conditions = [pb.Initial(u, 1), pb.Initial(u.diff(T), 0), pb.Observation(u, times[:, None], times)]
    parametric = Parametric(pb.Problem(c * u.diff(T, 2) + k * u, pb.TimeInterval(T, 0, 3), conditions))
    forward = EvolutionForward.around(parametric, numbers, 1e-9, Budget(10.0), 0, np.ones(2))
    found = predicted(parametric, parametric.observations[0], forward.respond(numbers), numbers)
    by_rate = -times * np.sin(2 * times)
    assert found.values == pytest.approx(np.cos(2 * times), abs=1e-9)
    assert found.slopes[:, 0] == pytest.approx(-0.5 * by_rate, abs=1e-8)  # ω falls by ω/2c
    assert found.slopes[:, 1] == pytest.approx(0.125 * by_rate, abs=1e-8)


@pytest.mark.parametrize("seed", [1035, 2035])
def test_how_an_epidemic_spreads_as_a_function_of_time(seed):
    """Of S′ = −b(t) S I, I′ = b(t) S I − 0.15 I from I alone: waves of b are short beside long steps in time."""
    S, ill, b = pb.field("S", T), pb.field("I", T), pb.field("b", T, prior=pb.Smooth(), start=0.3)
    days = np.arange(1.0, 61.0)

    def rates(t, y):
        spreading = (0.3 + 0.15 * np.cos(2 * np.pi * t / 40)) * y[0] * y[1]
        return [-spreading, spreading - 0.15 * y[1]]

    path = solve_ivp(rates, (0, 60), [0.99, 0.01], rtol=1e-10, atol=1e-12, t_eval=days).y[1]
    values = path + 0.003 * np.random.default_rng(seed).standard_normal(60)
    conditions = [pb.Initial(S, 0.99), pb.Initial(ill, 0.01), pb.Observation(ill, {T: days}, values, noise=0.003)]
    equations = [S.diff(T) + b * S * ill, ill.diff(T) - b * S * ill + 0.15 * ill]
    found = pb.solve(pb.Problem(equations, pb.TimeInterval(T, 0, 60), conditions))
    seen = np.linspace(5, 40, 100)[:, None]
    off = found(seen)["b"] - (0.3 + 0.15 * np.cos(2 * np.pi * seen[:, 0] / 40))
    assert found.status == "converged"
    assert np.linalg.norm(off) < 0.1 * 0.3 * np.sqrt(100)
    assert np.mean(np.abs(off) <= 1.96 * found.standard_deviation(seen)["b"]) > 0.8


def test_a_conductivity_that_varies_over_a_plate_without_noise():
    """Of u_t = ∇·(a ∇u) + f with a = 1 + x/2 and u = e⁻ᵗ sin πx sin πy, which takes no cells over space and time."""
    x, y, t = pb.coordinates("x y t")
    u, a = pb.field("u", x, y, t), pb.field("a", x, prior=pb.Smooth())
    wave = sp.exp(-t) * sp.sin(sp.pi * x) * sp.sin(sp.pi * y)
    true = 1 + x / 2
    source = wave.diff(t) - (true * wave.diff(x)).diff(x) - true * wave.diff(y, 2)
    domain = pb.Rectangle((x, 0, 1), (y, 0, 1)) * pb.TimeInterval(t, 0, 1)
    where = domain.sample(300, "kronecker")
    data = pb.Observation(u, where, values_of(wave, (x, y, t), where))
    equation = sp.Eq(u.diff(t), (a * u.diff(x)).diff(x) + a * u.diff(y, 2) + source)
    found = pb.solve(pb.Problem(equation, domain, [pb.Dirichlet(u, 0), pb.Initial(u, wave.subs(t, 0)), data]))
    inside = domain.sample(100, "halton", 1)
    off = found(inside)["a"] - 1 - inside[:, 0] / 2
    assert found.diagnostics.method == "Lines"
    assert np.abs(off).max() < 1e-4
    assert np.mean(np.abs(off) <= 1.96 * found.standard_deviation(inside)["a"]) > 0.9


def test_deviations_are_those_of_cramer_and_rao():
    problem, where, values = heat(pb.unknown("k", bounds=(0, None)))
    found = pb.solve(problem).parameters["k"]
    bound = 0.01 / np.linalg.norm(np.pi**2 * where[:, 1] * values)
    assert abs(found.value - 0.1) < 1e-2 * bound  # data without noise, of which it is told that they have some
    assert abs(found.deviation / bound - 1) < 1e-3
    assert found.interval == pytest.approx(0.1 * np.exp(np.array([-1.96, 1.96]) * bound / 0.1), rel=1e-3)


def test_deviations_by_lines_are_those_of_cramer_and_rao():
    """Of u′ = r u (1 − u), u(0) = a: r and a make up for each other, and answers during a search are old ones."""
    t = pb.coordinates("t")
    u, r, a = pb.field("u", t), pb.unknown("r", start=1.5, bounds=(0, None)), pb.unknown("a", start=0.03, bounds=(0, 1))
    times = np.linspace(0.5, 10, 12)

    def logistic(r, a):
        return 1 / (1 + (1 / a - 1) * np.exp(-r * times))

    values = logistic(1.2, 0.01) + 0.02 * np.random.default_rng(0).standard_normal(12)
    observed = pb.Observation(u, times[:, None], values, noise=0.02)
    found = pb.solve(pb.Problem(u.diff(t) - r * u * (1 - u), pb.TimeInterval(t, 0, 10), [pb.Initial(u, a), observed]))
    (rate, start), step = (found.parameters[name] for name in "ra"), 1e-6
    by_rate = (logistic(rate.value + step, start.value) - logistic(rate.value - step, start.value)) / (2 * step)
    by_start = (logistic(rate.value, start.value + step) - logistic(rate.value, start.value - step)) / (2 * step)
    information = np.column_stack([by_rate, by_start]) / 0.02
    bound = np.sqrt(np.diag(np.linalg.inv(information.T @ information)))
    assert [rate.deviation, start.deviation] == pytest.approx(bound, rel=1e-2)
    left = information.T @ (logistic(rate.value, start.value) - values) / 0.02  # nothing, at the best fit
    assert np.abs(np.linalg.solve(information.T @ information, left) / bound).max() < 1e-3


def test_intervals_hold_the_truth():
    held = 0
    for seed in range(20):
        found = pb.solve(rod(pb.unknown("q"), 2 * SHAPE + noise(seed, 0.01))).parameters["q"]
        held += found.interval[0] < 2 < found.interval[1]
    assert held >= 16  # of 19 expected; fewer once in 400 times


def test_noise_is_estimated_with_the_degrees_of_freedom_that_are_left():
    values = 2 * SHAPE + noise(3, 0.01)
    found = pb.solve(rod(pb.unknown("q"), values))
    q = float(SHAPE @ values / (SHAPE @ SHAPE))
    spread = float(np.sqrt(np.sum((values - q * SHAPE) ** 2) / 8))
    assert found.parameters["q"].value == pytest.approx(q, rel=1e-6)
    assert found.parameters["q"].deviation == pytest.approx(spread / np.linalg.norm(SHAPE), rel=1e-4)
    assert next(iter(found.parameters.noise.values())) == pytest.approx(spread, rel=1e-4)


def test_priors_and_data_are_weighed_by_their_precision():
    values = 2 * SHAPE + noise(1, 0.02)
    found = pb.solve(rod(pb.unknown("q", prior=(1.0, 0.1)), values, noise=0.02)).parameters["q"]
    precision = (SHAPE @ SHAPE) / 0.02**2 + 1 / 0.1**2
    assert found.value == pytest.approx(((SHAPE @ values) / 0.02**2 + 1 / 0.1**2) / precision, rel=1e-5)
    assert found.deviation == pytest.approx(precision**-0.5, rel=1e-3)


def test_outliers_do_not_move_the_answer_by_much():
    values = 2 * SHAPE + noise(0, 0.001)
    values[4] += 1.0
    misled, found = (pb.solve(rod(pb.unknown("q"), values, loss=loss)).parameters["q"] for loss in ("squares", "huber"))
    assert abs(misled.value - 2) > 0.5
    assert found.interval[0] < 2 < found.interval[1]
    assert abs(found.value - 2) < 0.02


def test_outliers_that_are_not_there_cost_little():
    """What data of normal noise are worth does not depend on how well they happen to fit."""
    plain, robust = (
        pb.solve(rod(pb.unknown("q"), 2 * SHAPE, noise=0.01, loss=loss)).parameters["q"].deviation
        for loss in ("squares", "huber")
    )
    assert 0.8 < robust / plain < 1.2


def test_an_outlier_has_no_say_in_the_interval():
    """With one of nine data far out, the deviation is about that of the others; residuals that are cut off are 0.84."""
    values = 2 * SHAPE + noise(0, 0.01)
    values[4] += 1.0
    found = pb.solve(rod(pb.unknown("q"), values, noise=0.01, loss="huber")).parameters["q"].deviation
    others = 0.01 / np.linalg.norm(np.delete(SHAPE, 4))
    assert 0.84 < found / others < 1.3


def test_bands_are_those_of_student_where_noise_is_estimated(tmp_path):
    found = pb.solve(rod(pb.unknown("q"), 2 * SHAPE + noise(0, 0.01)))
    low, high = found.credible_band([[0.5]])
    assert (high - low)[0] / 2 == pytest.approx(2.306 * found.standard_deviation([[0.5]])[0], rel=1e-4)
    q = found.parameters["q"]
    assert q.interval[1] - q.value == pytest.approx(2.306 * q.deviation, rel=1e-4)
    assert pb.load(found.save(tmp_path / "rod.pibls")).posterior.degrees == found.posterior.degrees


@pytest.mark.parametrize(
    "name", ["product", "times_zero", "fewer_data", "constant_data", "out_of_reach", "symmetric_sensors"]
)
def test_what_data_do_not_determine_is_no_number(name):
    flaw = inverse.unidentifiable()[name]
    found = pb.solve(flaw.problem(0))
    assert found.status == "ill-posed"
    lost = {key for key, entry in found.parameters.items() if not entry.is_determined}
    assert lost == set(flaw.direction)
    (direction,) = found.parameters.directions
    along = sum(direction[key] * value for key, value in flaw.direction.items())
    assert abs(along) == pytest.approx(1.0, abs=1e-3)
    assert all(np.isnan(found.parameters[key].value) for key in lost)


def test_what_is_determined_is_found_beside_what_is_not():
    found = pb.solve(inverse.unidentifiable()["times_zero"].problem(0))
    assert abs(found.parameters["q"].value - 2) < 2e-3
    assert "does not fit" not in found.diagnostics.message


def test_the_combination_that_is_determined_is_named():
    found = pb.solve(rod(pb.unknown("a", start=2.0) * pb.unknown("b", start=0.5), 3 * SHAPE))
    assert "only a*b = 3 is determined" in found.diagnostics.message
    assert "only a*b" in str(found.parameters)


def test_sums_that_are_determined_are_named():
    a, b = pb.unknown("a", start=2.0), pb.unknown("b", start=0.5)
    found = pb.solve(rod(a + 2 * b, 3 * SHAPE))
    assert "only a + 2*b = 3 is determined" in found.diagnostics.message


def test_what_is_open_is_told_apart():
    """Two pairs, of which one product and one sum are determined: two directions that have nothing in common."""
    a, b, c, d = (pb.unknown(name, start=1.0) for name in "abcd")
    slopes = pb.Observation(U.diff(X), {X: PLACES}, 0.5 - PLACES + 2, noise=1e-3)
    line = [pb.Dirichlet(U, 0, on=LINE.left), pb.Dirichlet(U, c + d, on=LINE.right)]
    found = pb.solve(pb.Problem(-U.diff(X, 2) - a * b, LINE, [*line, slopes]))
    assert found.status == "ill-posed"
    remarks = " ".join(found.parameters.remarks)
    assert "only a*b = 1 is determined" in remarks
    assert "only c + d = 2 is determined" in remarks
    assert [set(own) for own in found.parameters.directions] in ([{"a", "b"}, {"c", "d"}], [{"c", "d"}, {"a", "b"}])


@pytest.mark.parametrize("name", inverse.wrong_models())
def test_wrong_models_are_told(name):
    found = pb.solve(inverse.wrong_models()[name](1))
    assert found.status == "stalled"
    assert "times as large as the stated noise" in found.diagnostics.message


def test_outliers_are_not_the_fault_of_the_model():
    values = 2 * SHAPE + noise(0, 0.001)
    values[[1, 4, 7]] += 1.0
    found = pb.solve(rod(pb.unknown("q"), values, noise=0.001, loss="huber"))
    assert found.status == "converged"
    assert found.diagnostics.settings["starts"] == 1
    wrong = 2 * SHAPE + 0.05 * np.sin(3 * np.pi * PLACES)
    found = pb.solve(rod(pb.unknown("q"), wrong, noise=0.001, loss="huber"))
    assert "times as large as the stated noise" in found.diagnostics.message


def test_a_wrong_model_is_told_by_signs_where_noise_is_not_stated():
    places = np.linspace(0.02, 0.98, 49)
    bump = 0.02 * np.sin(3 * np.pi * places)
    values = places * (1 - places) + bump + 0.002 * np.random.default_rng(0).standard_normal(49)
    observed = pb.Observation(U, {X: places}, values)
    found = pb.solve(pb.Problem(-U.diff(X, 2) - pb.unknown("q"), LINE, [pb.Dirichlet(U, 0), observed]))
    assert found.status == "stalled"
    assert "same sign in whole regions" in found.diagnostics.message


def test_a_wrong_model_does_not_pass():
    found = pb.solve(rod(pb.unknown("q"), 2 * SHAPE + 0.05 * np.sin(3 * np.pi * PLACES), noise=0.001))
    assert found.status == "stalled"
    assert "model does not fit" in found.diagnostics.message


def test_starts_far_away_end_in_the_same_answer():
    values = np.exp(-2.0 * PLACES)
    for start in (1e-3, 1.0, 30.0):
        k = pb.unknown("k", start=start, bounds=(0, None))
        conditions = [pb.Dirichlet(U, 1, on=LINE.left), pb.Observation(U, {X: PLACES}, values)]
        found = pb.solve(pb.Problem(U.diff(X) + k * U, LINE, conditions))
        assert found.parameters["k"].value == pytest.approx(2.0, rel=1e-8)


@pytest.mark.parametrize("bounds", [None, (0, None)])
@pytest.mark.parametrize("share", [None, 0.01])
@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_data_may_be_in_any_unit(size, share, bounds):
    """Whatever a start gives, and whether or not noise is stated."""
    off = 0.0 if share is None else noise(0, share * 0.1 * size)
    settings = {} if share is None else {"noise": share * 0.1 * size}
    found = pb.solve(rod(pb.unknown("q", bounds=bounds), size * SHAPE + off, **settings))
    assert found.status == "converged"
    assert found.parameters["q"].value / size == pytest.approx(1.0, abs=1e-9 if share is None else 0.02)


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_coefficients_may_be_in_any_unit(size):
    k = pb.unknown("k", bounds=(0, None))
    observed = pb.Observation(U, {X: PLACES}, SHAPE / size, noise=1e-3 / size)
    found = pb.solve(pb.Problem(-k * U.diff(X, 2) - 1, LINE, [pb.Dirichlet(U, 0), observed]))
    assert found.status == "converged"
    assert found.parameters["k"].value / size == pytest.approx(1.0, rel=1e-3)


def test_where_nothing_fits_data_are_not_said_to_tell_nothing():
    """A positive strength bends the rod to one side only, and data are on the other: it goes to nothing."""
    found = pb.solve(rod(pb.unknown("q", bounds=(0, None)), -SHAPE, noise=1e-3))
    assert found.status == "stalled"
    assert not found.parameters["q"].is_determined
    assert "The search ended at q = " in found.diagnostics.message
    assert "The model does not fit" in found.diagnostics.message


def test_other_values_that_fit_are_told_once():
    found = pb.solve(rod(pb.unknown("q", start=1, bounds=(-10, 10)) ** 2, 4 * SHAPE, noise=1e-3))
    assert found.status == "ill-posed"
    assert found.diagnostics.message.count("Other values fit as well: q = -2.") == 1


EVEN = np.linspace(0.5, 10, 20)


def oscillation(start, times, rate, unit=1.0):
    """Return u″ = −w u with values of an oscillation, in another unit of time."""
    w, u, rng = pb.unknown("w", start=start * unit**2), pb.field("u", T), np.random.default_rng(0)
    values = np.cos(rate * times) + 0.01 * rng.standard_normal(len(times))
    conditions = [pb.Initial(u, 1), pb.Initial(u.diff(T), 0), pb.Observation(u, times / unit, values, noise=0.01)]
    return pb.Problem(u.diff(T, 2) + w * u, pb.TimeInterval(T, 0, 10 / unit), conditions)


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_a_slower_oscillation_with_the_same_values_is_told(unit):
    """The values of cos 2t half a unit apart are those of cos (4π − 2)t."""
    fast, slow, far = (pb.solve(oscillation(start, EVEN, 2.0, unit)) for start in (112.0, 1.0, 70.0))
    assert fast.status == "ill-posed"
    assert fast.parameters["w"].value == pytest.approx((4 * np.pi - 2) ** 2 * unit**2, rel=1e-3)
    assert f"Other values fit as well: w = {slow.parameters['w'].value:.4g}." in fast.diagnostics.message
    assert slow.status == "converged"
    assert slow.parameters["w"].value == pytest.approx(4 * unit**2, rel=3e-3)
    assert far.parameters["w"].value == pytest.approx(slow.parameters["w"].value, rel=1e-5)
    assert "faster ones may fit as well" in far.diagnostics.message


def test_measurements_at_uneven_times_have_no_second_oscillation():
    """As fast a one as before, seen as seldom, but no slower one has its values."""
    times = np.append(EVEN[:-1] + np.random.default_rng(0).uniform(-0.2, 0.2, 19), 10.0)
    found = pb.solve(oscillation(111.0, times, 4 * np.pi - 2))
    assert found.status == "converged"
    assert found.diagnostics.settings["starts"] > 1
    assert found.parameters["w"].value == pytest.approx((4 * np.pi - 2) ** 2, rel=1e-3)


def test_from_a_start_that_is_too_fast_for_its_measurements_the_slow_truth_is_found():
    """Of u_tt = u_xx − m² u at scattered points, from a mass of which every minimum nearby is a wrong one."""
    problem = inverse.klein_gordon_mass()
    (m2,) = problem.parameters
    far = [e.xreplace({m2: pb.unknown("m2", start=435)}) for e in problem.equations]
    found = pb.solve(pb.Problem(far, problem.domain, problem.conditions))
    assert found.status == "converged"
    assert found.parameters["m2"].value == pytest.approx(4, rel=1e-8)


def test_a_factor_that_a_function_makes_up_for_is_no_number():
    q, k, places = pb.field("q", X, prior=pb.Smooth()), pb.unknown("k", bounds=(0, None)), np.linspace(0.05, 0.95, 30)
    observed = pb.Observation(U, {X: places}, np.sin(np.pi * places) + 0.01 * np.cos(57 * places), noise=0.01)
    found = pb.solve(pb.Problem(-k * U.diff(X, 2) - q, LINE, [pb.Dirichlet(U, 0), observed]))
    assert found.status == "ill-posed"
    assert "The data do not determine k: unknown functions can make up for it." in found.diagnostics.message
    assert not found.parameters["k"].is_determined


def test_an_unknown_function_and_its_band():
    problem = inverse.rate_function(noise=0.01)
    found = pb.solve(problem)
    where = np.linspace(0.05, 0.95, 50)[:, None]
    truth = 0.1 + np.exp(-((where[:, 0] - 0.5) ** 2) / 0.045)
    values, deviations = found(where)["k"], found.standard_deviation(where)["k"]
    assert np.linalg.norm(values - truth) < 0.15 * np.linalg.norm(truth)
    assert np.mean(np.abs(values - truth) < 2.5 * deviations) > 0.8
    assert found.parameters.entries == ()


def test_a_straight_line_is_within_its_band():
    """Of (a u′)′ = −1 with a = 2 + x: priors of long waves would be sure of another function."""
    a, places = pb.field("a", X, prior=pb.Smooth(), start=1), np.linspace(0.01, 0.99, 50)
    # a u′ = c − x, with c such that both ends are zero
    exact = (np.log1p(places / 2) / np.log(1.5)) - places
    size, held = 0.005 * np.sqrt(np.mean(exact**2)), []
    for seed in range(8):
        values = exact + size * np.random.default_rng(seed).standard_normal(50)
        observed = pb.Observation(U, {X: places}, values, noise=size)
        found = pb.solve(pb.Problem((a * U.diff(X)).diff(X) + 1, LINE, [pb.Dirichlet(U, 0), observed]))
        off = found(places[:, None])["a"] - 2 - places
        held.append(np.mean(np.abs(off) < 1.96 * found.standard_deviation(places[:, None])["a"]))
    assert np.mean(held) > 0.85


def test_a_function_without_noise_is_within_its_band():
    problem = inverse.rate_function()
    found = pb.solve(problem)
    (k,) = problem.truth
    where = np.linspace(0.0, 1.0, 101)[:, None]
    true = 0.1 + np.exp(-((where[:, 0] - 0.5) ** 2) / 0.045)
    off, spread = np.abs(found(where)[k] - true), found.standard_deviation(where)[k]
    assert found.status == "converged"
    assert np.linalg.norm(off) < 1e-6 * np.linalg.norm(true)
    assert np.mean(off <= 1.96 * spread) > 0.95
    assert np.linalg.norm(spread) < 1e-6 * np.linalg.norm(true)


@pytest.mark.parametrize("name", ["heat_diffusivity", "robin_coefficient"])
def test_without_noise_intervals_and_bands_are_those_of_discretisation(name):
    """Solutions are wrong by more than rounding, and nothing else is."""
    problem = getattr(inverse, name)()
    found = pb.solve(problem)
    (entry,) = found.parameters.entries
    (truth,) = problem.truth.values()
    assert entry.interval[0] <= truth <= entry.interval[1]
    assert entry.deviation < 5 * abs(entry.value - truth)
    where = problem.domain.sample(300, "halton", 5)
    ((_, exact),) = problem.exact.items()
    off = np.abs(found(where) - values_of(exact, problem.domain.coordinates, where))
    deviations = found.standard_deviation(where)
    assert np.mean(off <= 1.96 * deviations) > 0.85
    assert np.linalg.norm(deviations) < 5 * np.linalg.norm(off)


@pytest.mark.parametrize("supposed", [1e-3, 1.0, 1e3])
def test_how_much_a_function_varies_does_not_depend_on_the_noise_that_was_supposed(supposed):
    basis = Cosines.of(pb.field("k", X, prior=pb.Smooth()), LINE)
    prior, rng = Smoothness(0.7, 0.3, 3.5), np.random.default_rng(5)
    rows = basis.values(np.linspace(0, 1, 200)[:, None], (0,))
    data = rows[:, 1:] @ (np.sqrt(prior.variances(basis)) * rng.standard_normal(basis.size - 1))
    noisy = data + 1e-3 * rng.standard_normal(200)
    linear = LinearisedData.of(rows[:, 1:] / supposed, noisy / supposed, rows[:, :1] / supposed)
    (found,) = most_probable(linear, (basis,), [Smoothness(1.0, 0.5, 3.5)], [(None, None)], 1e-12)
    assert 0.2 < found.size / prior.size < 5
    assert 0.3 < found.length / prior.length < 3


def test_corrected_slopes_foretell_the_last_step():
    rng = np.random.default_rng(0)
    one, two = (Place(rng.random(3), None, rng.random(5), rng.random((5, 3))) for _ in range(2))
    fixed = two.corrected(one)
    assert fixed.residual - one.residual == pytest.approx(fixed.slopes @ (two.point - one.point))


def test_a_path_that_runs_apart_is_found_from_its_beginning():
    problem = inverse.lorenz_parameters()
    found = pb.solve(problem, tol=1e-4)
    assert {k: found.parameters[k].value for k in problem.truth} == pytest.approx(dict(problem.truth), rel=1e-5)
    assert found.diagnostics.settings["starts"] == 1


def test_an_unknown_source_without_noise():
    q = pb.field("q", X, prior=pb.Smooth())
    values = np.sin(np.pi * PLACES)
    found = pb.solve(rod(q, values))
    where = np.linspace(0.2, 0.8, 7)[:, None]
    assert found(where)["q"] == pytest.approx(np.pi**2 * np.sin(np.pi * where[:, 0]), rel=0.02)


def test_uncertain_numbers_without_data_give_bands():
    q = pb.unknown("q", prior=(2.0, 0.3))
    problem = pb.Problem(-U.diff(X, 2) - q, LINE, [pb.Dirichlet(U, 0)])
    found = pb.solve(problem, uncertainty=True)
    assert found([[0.5]]) == pytest.approx([0.25])
    assert found.standard_deviation(PLACES[:, None]) == pytest.approx(0.3 * SHAPE, rel=1e-6)
    assert found.parameters["q"].deviation == pytest.approx(0.3)
    with pytest.raises(ProblemError, match="q has no prior"):
        pb.solve(pb.Problem(-U.diff(X, 2) - pb.unknown("q"), LINE, [pb.Dirichlet(U, 0)]), uncertainty=True)


@pytest.mark.parametrize(("start", "number"), [(0, 1), (8, 1), (40, 2), (80, 3)])
def test_eigenvalues_that_a_slope_fixes(start, number):
    value = pb.unknown("value", start=start)
    steep = pb.Condition(sp.Eq(U.diff(X), 1), on=LINE.left)
    found = pb.solve(pb.Problem(-U.diff(X, 2) - value * U, LINE, [pb.Dirichlet(U, 0), steep]))
    root = number * np.pi
    assert found.status == "converged"
    assert found.parameters["value"].value == pytest.approx(root**2, rel=1e-7)
    assert abs(found.parameters["value"].value - root**2) <= 5 * found.parameters["value"].deviation
    assert found(PLACES[:, None]) == pytest.approx(np.sin(root * PLACES) / root, abs=1e-7)
    assert "value = " in found.diagnostics.message


def test_an_eigenvalue_of_a_plate_that_a_value_without_noise_fixes(tmp_path):
    x, y = pb.coordinates("x y")
    v, square = pb.field("v", x, y), pb.Rectangle((x, 0, 1), (y, 0, 1))
    middle = pb.Observation(v, [[0.5, 0.5]], [1.0], exact=True)
    value = pb.unknown("value", start=15, bounds=(0, 30))
    found = pb.solve(pb.Problem(-pb.laplacian(v) - value * v, square, [pb.Dirichlet(v, 0), middle]))
    assert found.parameters["value"].value == pytest.approx(2 * np.pi**2, rel=1e-8)
    assert found([[0.3, 0.4]]) == pytest.approx([np.sin(0.3 * np.pi) * np.sin(0.4 * np.pi)], rel=1e-8)
    again = pb.load(found.save(tmp_path / "plate.pibls"))
    assert again.parameters["value"] == found.parameters["value"]
    low = pb.unknown("value", start=9, bounds=(0, 10))
    with pytest.raises(ProblemError, match="outside of its bounds"):
        pb.solve(pb.Problem(-pb.laplacian(v) - low * v, square, [pb.Dirichlet(v, 0), middle]))


def test_a_coefficient_that_a_mean_fixes():
    k = pb.unknown("k", start=1, bounds=(0, None))
    found = pb.solve(pb.Problem(-k * U.diff(X, 2) - 1, LINE, [pb.Dirichlet(U, 0), pb.Mean(U, 1 / 3)]))
    assert found.parameters["k"].value == pytest.approx(0.25, rel=1e-9)


def test_one_value_does_not_tell_its_own_noise():
    found = pb.solve(rod(pb.unknown("q"), 2 * SHAPE[[4]], places=PLACES[[4]]))
    q = found.parameters["q"]
    assert q.value == pytest.approx(2.0)
    assert np.isinf(q.deviation)
    assert np.isinf(q.interval).all()
    assert "inf" in str(found.parameters)


def test_linearised_uncertainty_is_that_of_solves_at_drawn_numbers():
    """Forty values of a coefficient at evenly spread probabilities, with a solve for each."""
    k = pb.unknown("k", prior=(2.0, 0.1), bounds=(0, None))

    def problem(value):
        return pb.Problem(-value * U.diff(X, 2) - sp.exp(X) + U**3, LINE, [pb.Dirichlet(U, 0)])

    found = pb.solve(problem(k), uncertainty=True)
    drawn = 2.0 + 0.1 * ndtri((np.arange(40) + 0.5) / 40)
    solved = np.array([pb.solve(problem(sp.Float(value)))(PLACES[:, None]) for value in drawn])
    assert found.standard_deviation(PLACES[:, None]) == pytest.approx(solved.std(axis=0), rel=0.03)
    samples = found.samples(PLACES[:, None], n=4000, seed=3)
    assert samples.shape == (4000, 9)
    assert samples.std(axis=0) == pytest.approx(solved.std(axis=0), rel=0.06)
    assert samples.mean(axis=0) == pytest.approx(solved.mean(axis=0), abs=0.1 * solved.std(axis=0).max())
    # One number is uncertain: samples are all of one shape, as solutions are.
    assert np.linalg.matrix_rank(samples - samples.mean(axis=0), tol=1e-8) == 1
    assert np.corrcoef(solved.T).min() > 0.999


def test_samples_of_a_seed_belong_together():
    t = pb.coordinates("t")
    y, z, rate = pb.field("y", t), pb.field("z", t), pb.unknown("rate", prior=(1.0, 0.1))
    equations = [y.diff(t) + rate * y, z.diff(t) - rate * y]
    problem = pb.Problem(equations, pb.TimeInterval(t, 0, 1), [pb.Initial(y, 1), pb.Initial(z, 0)])
    samples = pb.solve(problem, uncertainty=True).samples(t=[0.5, 1.0], n=50, seed=1)
    assert samples["y"].shape == (50, 2)
    assert samples["y"] + samples["z"] == pytest.approx(np.ones((50, 2)), abs=1e-6)
    assert samples["y"].std() > 0.01


def test_samples_where_noise_is_estimated_are_those_of_student():
    found = pb.solve(rod(pb.unknown("q"), 2 * SHAPE + noise(0, 0.01)))
    samples = found.samples([[0.5]], n=40_000)[:, 0]
    low, high = (end[0] for end in found.credible_band([[0.5]]))
    assert np.mean((samples > low) & (samples < high)) == pytest.approx(0.95, abs=0.004)
    assert np.isnan(found.samples([[1.5]], n=3)).all()
    with pytest.raises(InputError, match="'n' parameter of samples"):
        found.samples([[0.5]], n=0)


def test_answers_are_stored_and_shown(tmp_path):
    found = pb.solve(rod(pb.unknown("q"), 2 * SHAPE + noise(0, 0.01)))
    again = pb.load(found.save(tmp_path / "rod.pibls"))
    assert again.parameters["q"] == found.parameters["q"]
    assert np.array_equal(again.parameters.correlation, found.parameters.correlation)
    assert np.array_equal(again.credible_band(PLACES[:, None])[0], found.credible_band(PLACES[:, None])[0])
    assert "<td" in found.parameters._repr_html_()
    assert str(found.parameters).splitlines()[1].startswith("q ")
    assert again.problem.parameters == ()


def test_what_cannot_be_done_is_refused():
    q = pb.unknown("q")
    with pytest.raises(ProblemError, match="Nothing was measured that could determine q"):
        pb.solve(pb.Problem(-U.diff(X, 2) - q, LINE, [pb.Dirichlet(U, 0)]))
    with pytest.raises(InputError, match="'method' parameter of solve does not go with unknown"):
        pb.solve(rod(q, SHAPE), method=pb.PIELM())


def test_what_cannot_be_solved_is_not_called_undetermined():
    # At a speed of 400 the wave goes to and fro two hundred times; a little work does not tell what data say of it.
    x, t = pb.coordinates("x t")
    u, c, times = pb.field("u", x, t), pb.unknown("c", start=400, bounds=(0, None)), np.linspace(0.1, 0.9, 9)
    conditions = [pb.Dirichlet(u, 0), pb.Initial(u, sp.sin(sp.pi * x)), pb.Initial(u.diff(t), 0)]
    measured = pb.Observation(u, {x: 0.5, t: times}, np.cos(np.pi * 1.3 * times), noise=0.01)
    domain = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    problem = pb.Problem(sp.Eq(u.diff(t, 2), c**2 * u.diff(x, 2)), domain, [*conditions, measured])
    found = pb.solve(problem, budget=0.3)
    assert found.status == "stalled"
    assert "do not depend on c" not in found.diagnostics.message


@pytest.mark.parametrize("name", ["plate", "heat", "decay"])
def test_numbers_of_which_nothing_is_known_are_refused_before_anything_is_solved(name, monkeypatch):
    monkeypatch.setattr(fixed, "solve_cells_nonlinear", lambda *_: pytest.fail("a problem was solved"))
    x, y, t = pb.coordinates("x y t")
    k, square, line, span = pb.unknown("k"), pb.Rectangle((x, 0, 1), (y, 0, 1)), pb.Interval((x, 0, 1)), (t, 0, 1)
    if name == "plate":
        u = pb.field("u", x, y)
        problem = pb.Problem(sp.Eq(-k * pb.laplacian(u), 1), square, [pb.Dirichlet(u, 0)])
    elif name == "heat":
        u, domain = pb.field("u", x, t), line * pb.TimeInterval(*span)
        problem = pb.Problem(u.diff(t) - k * u.diff(x, 2), domain, [pb.Dirichlet(u, 0), pb.Initial(u, x * (1 - x))])
    else:
        u = pb.field("u", t)
        problem = pb.Problem(u.diff(t) + k * u**2, pb.TimeInterval(*span), [pb.Initial(u, 1)])
    with pytest.raises(ProblemError, match="Nothing was measured that could determine k"):
        pb.solve(problem)
