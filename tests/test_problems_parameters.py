"""Parameters of the zoo: what they change, and what is refused with a reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from pibls import problems
from pibls.errors import InputError, PiblsError
from pibls.problem import Problem
from test_problems_residuals import defects

RANGES: list[tuple[Callable[..., Problem], str, float, float]] = [
    (problems.advection_beta, "beta", 0.1, 1000),
    (problems.anisotropic_mixed, "correlation", -0.99, 0.99),
    (problems.annulus, "radius", 0.01, 0.99),
    (problems.beam, "load", 1e-3, 1e6),
    (problems.convection_diffusion, "eps", 1e-6, 100),
    (problems.damped_oscillator, "damping", 0, 100),
    (problems.damped_oscillator, "stiffness", 1e-9, 100),
    (problems.diffusion_reaction, "mu", 1e-9, 1000),
    (problems.elasticity, "poisson_ratio", 0, 0.4999),
    (problems.helmholtz, "k", 0.1, 1000),
    (problems.layer_2d, "eps", 1e-6, 100),
    (problems.maxwell_1d, "permittivity", 0.01, 100),
    (problems.robin_disk, "alpha", 1e-9, 1000),
    (problems.wave, "speed", 0.01, 100),
]
IDS = [f"{function.__name__}-{name}" for function, name, _, _ in RANGES]


@pytest.mark.parametrize(("function", "name", "low", "high"), RANGES, ids=IDS)
def test_values_out_of_range_are_refused(function: Callable[..., Problem], name: str, low: float, high: float) -> None:
    for value in (low - 1, high * 1.001 + 1e-3, float("nan"), float("inf"), "2", None, True, 1j, [1.0], sp.Symbol("k")):
        with pytest.raises(
            InputError, match=f"The '{name}' parameter of {function.__name__} must be .* Choose a value"
        ):
            function(**{name: value})


@pytest.mark.parametrize("function", [problems.poisson_nd, problems.heat_nd])
@pytest.mark.parametrize("value", [1, 0, -3, 101, 2.5, "3", None, True])
def test_dimension_must_be_a_whole_number(function: Callable[..., Problem], value: object) -> None:
    with pytest.raises(InputError, match=f"The 'dimension' parameter of {function.__name__} must be an integer"):
        function(dimension=value)


@pytest.mark.parametrize("value", [0, 101, 1.5, "10"])
def test_power_of_the_bump_must_be_a_whole_number(value: object) -> None:
    with pytest.raises(InputError, match="The 'a' parameter of poisson_square must be an integer"):
        problems.poisson_square(a=value)  # type: ignore[arg-type]


def test_overdamped_oscillator_is_refused() -> None:
    with pytest.raises(InputError, match=r"above damping²/4.*Got 1 with damping 2"):
        problems.damped_oscillator(damping=2, stiffness=1)


@pytest.mark.parametrize("k", [sp.pi * sp.sqrt(2), sp.pi * sp.sqrt(5), np.pi * np.sqrt(50), 10 * np.pi * np.sqrt(2)])
def test_resonant_wave_numbers_are_refused(k: object) -> None:
    with pytest.raises(InputError, match=r"'k' parameter of helmholtz.*eigenvalue.*Change k a little"):
        problems.helmholtz(k)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [np.pi, np.pi * np.sqrt(3), np.pi * np.sqrt(7), 10])
def test_wave_numbers_that_are_no_sum_of_two_squares_are_taken(k: float) -> None:
    assert max(defects(problems.helmholtz(k)).values()) < 1e-9


@settings(max_examples=15, deadline=None, derandomize=True)
@given(choice=st.sampled_from(range(len(RANGES))), position=st.floats(0, 1))
def test_every_parameter_in_range_gives_a_solved_problem(choice: int, position: float) -> None:
    function, name, low, high = RANGES[choice]
    value = low + position * (high - low)
    try:
        problem = function(**{name: value})
    except PiblsError as error:
        assert name in {"k", "damping", "stiffness"}
        assert "eigenvalue" in str(error) or "oscillates" in str(error)  # noqa: PT017
        return
    assert max(defects(problem).values()) < 1e-8


def test_convection_diffusion_layer_does_not_overflow() -> None:
    for eps in (1e-6, 1e-3, 0.2, 100):
        problem = problems.convection_diffusion(eps)
        u = problem.exact_values(np.array([[0.0], [0.5], [1 - eps / 2], [1.0]]))["u"]
        assert u[0] == pytest.approx(0, abs=1e-12)
        assert u[-1] == pytest.approx(1, rel=1e-12)
        if eps < 0.01:
            assert u[1] < 1e-9
            assert u[2] == pytest.approx(np.exp(-0.5), rel=1e-8)


def test_layer_2d_drops_to_zero_within_its_width_and_is_smooth_before() -> None:
    for eps in (1e-6, 1e-3):
        X = np.array([[0.0, 0.5], [0.25, 0.5], [0.5, 1 / 6], [1 - eps, 0.5], [1.0, 0.3], [0.7, 1.0]])
        u = problems.layer_2d(eps).exact_values(X)["u"]
        np.testing.assert_allclose(u, [0, 0.25, 0.25, 1 - eps - np.exp(-1), 0, 0], atol=1e-9)


def test_fixed_entries_are_the_general_problems_at_one_value() -> None:
    assert str(problems.boundary_layer()) == str(problems.convection_diffusion(1e-3))
    assert str(problems.helmholtz_high()) == str(problems.helmholtz(40))


def test_beam_scales_with_its_load() -> None:
    X = np.linspace(0, 1, 7)[:, None]
    one, many = (problems.beam(load).exact_values(X)["u"] for load in (1, 50))
    np.testing.assert_allclose(many, 50 * one, atol=1e-15)


def test_damped_oscillator_against_the_matrix_exponential() -> None:
    from scipy.linalg import expm

    c, k = 0.7, 3.0
    times = np.linspace(0, 10, 9)
    expected = [expm(t * np.array([[0, 1], [-k, -c]]))[0, 0] for t in times]
    found = problems.damped_oscillator(c, k).exact_values(times[:, None])["u"]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_stokes_velocity_is_free_of_divergence_and_slip() -> None:
    problem = problems.stokes()
    assert problem.exact is not None
    x, y = problem.domain.coordinates
    assert sp.expand(problem.exact["u"].diff(x) + problem.exact["v"].diff(y)) == 0
    walls = problem.exact_values(problem.domain.boundary.sample(50).points)
    assert max(np.abs(walls["u"]).max(), np.abs(walls["v"]).max()) < 1e-14


def test_annulus_conditions_sit_on_their_own_circles() -> None:
    outer, inner = (s.place.part.sample(40) for s in problems.annulus(0.3).statements[1:])
    np.testing.assert_allclose(np.hypot(*outer.points.T), 1, rtol=1e-12)
    np.testing.assert_allclose(np.hypot(*inner.points.T), 0.3, rtol=1e-12)
    np.testing.assert_allclose(inner.normals, -inner.points / 0.3, atol=1e-12)


def test_schroedinger_conserves_the_norm() -> None:
    problem = problems.schroedinger()
    x = np.linspace(-np.pi, np.pi, 64, endpoint=False)
    norms = []
    for t in (0.0, 0.3, 1.0):
        values = problem.exact_values(np.column_stack([x, np.full_like(x, t)]))
        norms.append(np.mean(values["u"] ** 2 + values["v"] ** 2))
    np.testing.assert_allclose(norms, 1 + 1 / 4 + 1 / 16, rtol=1e-13)


def test_six_dimensions_are_those_of_the_general_problem() -> None:
    assert str(problems.poisson_6d()) == str(problems.poisson_nd(dimension=6))
