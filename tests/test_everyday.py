"""Everyday problems: what is claimed of each fulfils its equations, and cheap ones are solved and said to be so."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import VALUES, Data, compile_function, with_exact_solution
from pibls.problem import Problem
from pibls.problems import everyday, everyday_error
from test_problems_residuals import defects

NAMES = list(everyday())
WITH_EXACT = list(with_exact_solution())
# Known as Python functions, with values at the ends that SymPy cannot take, or with erf, which it cannot vectorise.
BY_DIFFERENCES = ("motz", "torsion_square", "hot_spot", "black_scholes", "narrow_source", "point_load", "heat_shock")
BY_DIFFERENCES += ("degenerate_end", "four_quadrants", "kinked_load", "resistive_layer", "thin_absorber", "loaded_spot")
NARROW = ("narrow_source", "point_load", "hot_spot", "resistive_layer", "thin_absorber", "loaded_spot")
CHEAP = ("two_materials", "contact_layer", "dose", "near_resonance", "kinked_load", "thermal_strain", "far_away")


@cache
def built(name: str) -> Problem:
    return everyday()[name]()


def test_there_are_many_and_none_can_be_changed() -> None:
    assert len(NAMES) >= 55
    assert all(isinstance(built(name), Problem) for name in NAMES)
    assert [name for name in NAMES if built(name).exact is not None] == WITH_EXACT
    assert set(NAMES) - set(WITH_EXACT) == set(VALUES) - {"motz", "bratu_unforced"}
    with pytest.raises(TypeError):
        everyday()["mine"] = pb.problems.poisson  # type: ignore[index]
    with pytest.raises(pb.PiblsError, match="'name' parameter of everyday_error"):
        everyday_error("mine", pb.solve(pb.problems.advection()))


@pytest.mark.parametrize("name", sorted(set(WITH_EXACT) - {*BY_DIFFERENCES, "supported_plate"}))
def test_exact_solution_satisfies_every_equation_and_condition(name: str) -> None:
    found = defects(built(name))
    if name == "neumann_cavity":  # its mean is zero since it is odd; the rule for a box less a ball has 3 digits
        assert found.pop("Mean(a = 0 on average)") < 1e-3
    assert max(found.values()) < 1e-9, found


@pytest.mark.parametrize("name", BY_DIFFERENCES)
def test_exact_solution_satisfies_its_equation_by_differences(name: str) -> None:
    problem = built(name)
    (statement,) = (s for s in problem.statements if s.is_equation)
    bounds, d = problem.domain.bounds, len(problem.domain.coordinates)
    step = 1e-3 * np.ptp(bounds, axis=1) * (0.02 if name in NARROW else 1)
    X = problem.domain.sample(200, seed=5)
    local = (X - bounds[:, 0]) / np.ptp(bounds, axis=1)
    X = X[((local > 0.1) & (local < 0.99)).all(axis=1)]
    X = X[(np.abs(X) > 4 * step).all(axis=1) & (np.abs(X).max(axis=1) > 0.2)]  # not where some are kinked or singular
    label = problem.field_names[0]

    def value(shift: np.ndarray) -> np.ndarray:
        return problem.exact_values(X + shift * step)[label]

    terms = []
    for term in statement.form.terms:
        (axis,) = np.flatnonzero(term.multi_index) if term.order else (0,)
        along = np.eye(d)[axis]
        f = {k: value(k * along) for k in range(-2, 3)}
        first = (f[-2] - 8 * f[-1] + 8 * f[1] - f[2]) / (12 * step[axis])
        second = (-f[-2] + 16 * f[-1] - 30 * f[0] + 16 * f[1] - f[2]) / (12 * step[axis] ** 2)
        terms.append((f[0], first, second)[term.order])
    residual = statement.form.residual_function(X, None, terms)
    size = max(float(np.abs(term).max()) for term in terms)
    assert np.abs(residual).max() < 2e-5 * max(size, float(np.abs(statement.form.source_function(X)).max()))


@pytest.mark.parametrize("name", ["motz", "torsion_square", "hot_spot", "hot_lid"])
def test_exact_solution_takes_its_boundary_values(name: str) -> None:
    problem = built(name)
    for condition in problem.conditions:
        if condition.label == "Dirichlet":
            part = problem.domain.boundary if condition.on is None else condition.on
            X = part.sample(50, seed=1).points
            X = X[np.abs(X - np.round(X)).max(axis=1) > 0.02]  # not where values jump
            target = float(condition.equation.rhs)
            scale = float(np.abs(problem.exact_values(problem.domain.sample(100))["u"]).max())
            assert np.abs(problem.exact_values(X)["u"] - target).max() < 1e-7 * scale


def test_values_known_from_elsewhere() -> None:
    at = built("motz").exact_values(np.array([[0.25, 0.0]]))["u"][0]
    assert at == pytest.approx(212.016851, abs=2e-6)  # Li, Mathon & Sermer (1987)
    assert built("hot_lid").exact_values(np.array([[0.5, 0.5]]))["u"][0] == pytest.approx(25)
    plate = built("supported_plate").exact_values(np.array([[0.5, 0.5], [0.0, 0.3]]))["u"]
    assert plate == pytest.approx([0.00406235, 0], rel=1e-6)  # Timoshenko & Woinowsky-Krieger
    last = VALUES["robertson"]["values"]
    assert [last[f][-1] for f in "abc"] == pytest.approx([0.7158270688, 9.185534765e-6, 0.2841637457], rel=1e-9)
    torsion = built("torsion_square").exact_values(built("torsion_square").domain.sample(4096))["u"].mean()
    assert 2 * torsion == pytest.approx(0.140577, abs=2e-4)  # the torsion constant of a square


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(WITH_EXACT)))
def test_values_are_at_points_of_the_domain(name: str) -> None:
    problem, table = built(name), VALUES[name]
    assert set(table["values"]) <= set(problem.field_names)
    assert problem.domain.contains(np.array(table["points"])).all()
    assert table["accuracy"] <= 1e-4


@pytest.mark.parametrize("name", CHEAP)
def test_cheap_ones_are_solved(name: str) -> None:
    solution = pb.solve(built(name), tol=1e-5)
    assert solution.status == "converged"
    assert everyday_error(name, solution) < 3e-5


def test_interfaces_keep_values_and_flux() -> None:
    x, y = pb.coordinates("x y")
    for name, at, k in (("two_plates", {x: sp.Rational(1, 2)}, (1, 10)), ("inclusion", {x: 0.3, y: 0.0}, (10, 1))):
        exact = built(name).exact
        assert exact is not None
        first, second = (piece.args[0] for piece in exact["u"].args[:2])
        point = {y: 0.3} | at
        assert float(first.subs(point)) == pytest.approx(float(second.subs(point)))
        flux = [float(c * e.diff(x).subs(point)) for c, e in zip(k, (first, second), strict=True)]
        assert flux[0] == pytest.approx(flux[1])
        assert not exact["u"].atoms(Data)


@pytest.mark.parametrize("name", ["hot_spot", "loaded_spot"])
def test_a_spot_is_known_in_its_middle(name):
    exact = next(iter(built(name).exact.values()))
    steps = np.array([0.0, 1e-9, 1e-7])
    values = compile_function(exact, built(name).domain.coordinates)(np.stack([0.62 + steps, 0.37 + 0 * steps], axis=1))
    np.testing.assert_allclose(values, values[-1], rtol=1e-6)
