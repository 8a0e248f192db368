"""Evolutions of the zoo against their own equations, and references against second computations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from internals import _PERIODIC, cole_hopf, etdrk4, gray_scott_path, reference
from pibls.errors import InputError
from pibls.problem import Problem
from pibls.problems import evolving
from test_problems_residuals import defects

WRITTEN = [
    evolving.advection_long,
    evolving.burgers_2d,
    evolving.taylor_green,
    partial(evolving.taylor_green, walls=True),
    evolving.fisher_kpp,
    evolving.heat_source,
    evolving.nonlinear_schroedinger,
    evolving.sine_gordon,
]


@pytest.mark.parametrize("build", WRITTEN, ids=lambda f: getattr(f, "__name__", "with walls"))
def test_exact_solutions_satisfy_every_equation_and_condition(build: Callable[[], Problem]) -> None:
    found = defects(build())
    assert all(defect <= 1e-9 for defect in found.values()), found


def test_two_solitons_satisfy_their_equation_to_round_off() -> None:
    assert max(defects(evolving.kdv()).values()) < 1e-7


@pytest.mark.parametrize("viscosity", [0.01 / np.pi, 0.001 / np.pi, 0.1])
def test_cole_hopf_agrees_with_another_quadrature(viscosity: float) -> None:
    u = cole_hopf(viscosity)
    for place, moment in ((0.01, 0.9), (-0.4, 0.5), (0.7, 0.2)):
        top, bottom = by_adaptive_quadrature(viscosity, place, moment)
        assert u(np.array([place]), np.array([moment]))[0] == pytest.approx(top / bottom, abs=1e-9)


def by_adaptive_quadrature(viscosity: float, place: float, moment: float) -> tuple[float, float]:
    """Return both integrals of Cole and Hopf, scaled by the same factor, by SciPy's adaptive rule on many pieces."""

    def exponent(z: Any) -> Any:
        return -np.cos(np.pi * (place - z)) / (2 * np.pi * viscosity) - z**2 / (4 * viscosity * moment)

    def weight(z: float) -> float:
        return float(np.exp(exponent(z) - peak))

    def weighted(z: float) -> float:
        return float(-np.sin(np.pi * (place - z))) * weight(z)

    peak = float(exponent(np.linspace(-4, 4, 8001)).max())
    pieces = list(pairwise(np.linspace(-4, 4, 81)))
    top, bottom = (sum(quad(f, a, b, epsabs=1e-13)[0] for a, b in pieces) for f in (weighted, weight))
    return top, bottom


def test_cole_hopf_converges_and_moves() -> None:
    X = np.random.default_rng(0).uniform((-1, 0), (1, 1), (300, 2))
    coarse, fine = cole_hopf(0.001 / np.pi), cole_hopf(0.001 / np.pi, nodes=3201)
    assert np.abs(coarse(X[:, 0], X[:, 1]) - fine(X[:, 0], X[:, 1])).max() < 1e-12
    moved = cole_hopf(0.001 / np.pi, 0.3, 0.5)(X[:, 0] + 0.3 + 0.5 * X[:, 1], X[:, 1])
    np.testing.assert_allclose(moved, 0.5 + coarse(X[:, 0], X[:, 1]), atol=1e-11)


def test_burgers_satisfies_its_equation_by_differences() -> None:
    u = cole_hopf(0.05, drift=0.3)
    h, place, moment = 1e-3, np.array([0.2, -0.6]), np.array([0.4, 0.8])
    slope = (u(place + h, moment) - u(place - h, moment)) / (2 * h)
    bend = (u(place + h, moment) - 2 * u(place, moment) + u(place - h, moment)) / h**2
    change = (u(place, moment + h) - u(place, moment - h)) / (2 * h)
    np.testing.assert_allclose(change + u(place, moment) * slope, 0.05 * bend, atol=2e-4)


@pytest.mark.parametrize("name", ["allen_cahn", "kuramoto_sivashinsky"])
def test_spectral_references_do_not_depend_on_their_steps(name: str) -> None:
    problem = _PERIODIC[name]
    coarser = replace(problem, modes=problem.modes * 5 // 6, steps=problem.steps // 2)
    rng = np.random.default_rng(0)
    x = problem.low + problem.length * rng.random(20)
    times = problem.stop * rng.uniform(0.05, 1.0, 20)
    assert np.abs(reference(name)(x, times) - etdrk4(coarser)(x, times)).max() < 1e-7


def test_the_spot_of_gray_and_scott_does_not_depend_on_its_grid() -> None:
    problem = evolving.gray_scott()
    X = problem.domain.sample(20)
    exact = problem.exact_values(X)
    side = 40
    waves = 1j * np.pi * np.fft.fftfreq(side, 1.0 / side)
    for row, (a, b, moment) in enumerate(X):
        (state,) = gray_scott_path_coarse()(np.array([moment]))
        for field, values in zip(("u", "v"), state, strict=True):
            found = np.exp(waves * (a + 1)) @ values @ np.exp(waves * (b + 1))
            assert abs(found.real - exact[field][row]) < 1e-7


def test_the_spot_of_gray_and_scott_starts_as_written() -> None:
    X = np.array([[0.0, 0.0, 0.0], [0.3, -0.7, 0.0]])
    exact = evolving.gray_scott().exact_values(X)
    spot = np.exp(2 * (np.cos(np.pi * X[:, 0]) + np.cos(np.pi * X[:, 1]) - 2)) / 2
    np.testing.assert_allclose(exact["v"], spot, atol=1e-9)
    np.testing.assert_allclose(exact["u"], 1 - spot, atol=1e-9)


@cache
def gray_scott_path_coarse() -> Callable[[Any], Any]:
    return gray_scott_path(40, 1e-9)


@pytest.mark.parametrize("build", [evolving.lorenz, evolving.lotka_volterra], ids=lambda f: f.__name__)
def test_ordinary_references_agree_with_another_integrator(build: Callable[[], Problem]) -> None:
    problem = build()
    stop = float(problem.domain.bounds[0, 1])
    forms = [s.form for s in problem.statements if s.is_equation]
    names = problem.field_names

    def right(_: float, state: np.ndarray) -> list[float]:
        rates = []
        for form in forms:
            slots = {t.slot: 0.0 if any(t.multi_index) else state[names.index(t.field)] for t in form.terms}
            rates.append(-float(form.residual.xreplace(slots)))
        return rates

    start = [float(s.form.source) * -1 for s in problem.statements if not s.is_equation]
    end = solve_ivp(right, (0, stop), start, method="LSODA", rtol=1e-10, atol=1e-10).y[:, -1]
    exact = problem.exact_values([stop])
    np.testing.assert_allclose([exact[name][0] for name in names], end, rtol=1e-5)


def test_van_der_pol_relaxes_from_one_branch_to_the_other() -> None:
    values = evolving.van_der_pol().exact_values(np.linspace(0, 200, 400))["u"]
    assert values[0] == 2.0
    assert values.min() < -1.9
    assert np.abs(values).max() < 2.01


@pytest.mark.parametrize("options", [{"viscosity": 0}, {"shift": 2}, {"drift": 5}])
def test_parameters_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="burgers"):
        evolving.burgers(**options)


@pytest.mark.parametrize("options", [{"viscosity": 0}, {"walls": 1}])
def test_parameters_of_vortices_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="taylor_green"):
        evolving.taylor_green(**options)
