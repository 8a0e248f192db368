"""Ill-posed problems: two solutions for those with many, a broken identity for those with none, a blow-up otherwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import sympy as sp

from pibls import problems
from pibls.problem import AtPoints, Interior, OnPart, Problem, Statement
from pibls.problems import ill_posed
from test_problems_residuals import Derivatives, defects, residual

CASES = ill_posed()
x, y, t = sp.symbols("x y t", real=True)
pi, sin, cos = sp.pi, sp.sin, sp.cos


def names(kind: str) -> list[str]:
    return [name for name, case in CASES.items() if case.kind == kind]


def build(name: str) -> Problem:
    return CASES[name].problem()


def exact(problem: Problem) -> Mapping[str, sp.Expr]:
    assert isinstance(problem.exact, Mapping)
    return problem.exact


# One solution, and what can be added to it.
MANY: Mapping[str, tuple[Mapping[str, sp.Expr], Mapping[str, sp.Expr]]] = {
    "pure_neumann": (exact(problems.neumann_gauge()), {"u": sp.Integer(1)}),
    "stokes_without_gauge": (exact(problems.stokes()), {"p": sp.Integer(1)}),
    "wave_without_velocity": (exact(problems.wave()), {"u": sin(pi * x) * sin(2 * pi * t)}),
    "wave_between_times": ({"u": sin(2 * pi * x) * cos(2 * pi * t)}, {"u": sin(pi * x) * sin(pi * t)}),
    "helmholtz_at_eigenvalue": ({"u": sin(pi * x) * sin(2 * pi * y)}, {"u": sin(pi * x) * sin(pi * y)}),
    "ode_one_condition": ({"u": x**3}, {"u": x}),
    "laplace_three_sides": ({"u": sp.exp(x) * sin(y)}, {"u": sp.sinh(pi * x) * sin(pi * y)}),
    "system_missing_condition": ({"u": cos(t), "v": -sin(t)}, {"u": sin(t), "v": cos(t)}),
}


def statement_on(problem: Problem, label: str) -> Statement:
    (found,) = (s for s in problem.statements if s.name.startswith(label))
    return found


def balance(problem: Problem, flux: float, source: float = 1.0) -> None:
    """Check ∫ f + ∮ g for −Δu = f, ∂u/∂n = g, which is zero if there is a solution."""
    equation, neumann = statement_on(problem, "the equation"), statement_on(problem, "Neumann")
    assert {(term.multi_index, term.coefficient) for term in equation.form.terms} == {((2, 0), -1), ((0, 2), -1)}
    X, weights = problem.domain.quadrature(900)
    made = -weights @ equation.form.source_function(X)
    assert isinstance(neumann.place, OnPart)
    X, normals, weights = neumann.place.part.quadrature(200)
    assert weights.sum() == pytest.approx(4)
    let_in = -weights @ neumann.form.source_function(X, normals)
    assert made == pytest.approx(source)
    assert let_in == pytest.approx(flux)
    assert abs(made + let_in) > 0.9


def resonance(problem: Problem, mode: sp.Expr, eigenvalue: sp.Expr, outflow: float) -> None:
    """Check that ∫ f v differs from ∮ (v ∂u/∂n − u ∂v/∂n) for L u = Δu + λu = f with L v = 0 and v = 0 outside.

    ``outflow`` is the second integral, which only takes the given boundary values.
    """
    form = statement_on(problem, "the equation").form
    assert {term.coefficient for term in form.terms} == {1, eigenvalue}
    assert sp.expand(sum(mode.diff(s, 2) for s in problem.domain.coordinates) + eigenvalue * mode) == 0
    v = sp.lambdify(problem.domain.coordinates, mode, "numpy")
    edge = problem.domain.boundary.sample(40).points
    assert np.abs(v(*edge.T)).max() < 1e-15
    X, weights = problem.domain.quadrature(900)
    projected = -weights @ (form.source_function(X) * v(*X.T))
    assert abs(projected - outflow) > 0.2


def neumann_incompatible() -> None:
    balance(build("neumann_incompatible"), flux=0)


def overdetermined_flux() -> None:
    problem = build("overdetermined_flux")
    balance(problem, flux=0, source=8)
    # With the values alone there is a solution; it has another flux.
    found = defects(problem, {"u": sin(pi * x) * sin(pi * y)})
    assert [name for name, defect in found.items() if defect > 1e-9] == [statement_on(problem, "Neumann").name]


def helmholtz_resonant() -> None:
    problem = build("helmholtz_resonant")
    assert statement_on(problem, "Dirichlet").form.source_function.constant == 0
    resonance(problem, sin(pi * x) * sin(pi * y), 2 * pi**2, outflow=0)


def oscillator_resonant() -> None:
    problem = build("oscillator_resonant")
    ends = {float(s.place.part.sample(1).points[0, 0]): s for s in problem.statements if isinstance(s.place, OnPart)}
    left, right = (-float(ends[place].form.source_function.constant) for place in (0.0, 1.0))
    slope = sin(pi * x).diff(x)
    outflow = -(right * float(slope.subs(x, 1)) - left * float(slope.subs(x, 0)))
    assert outflow == pytest.approx(np.pi)
    resonance(problem, sin(pi * x), pi**2, outflow)


def contradictory_dirichlet() -> None:
    problem = build("contradictory_dirichlet")
    sides = [s for s in problem.statements if isinstance(s.place, OnPart) and s.place.part == problem.domain.left]
    for side in sides:
        assert [(term.multi_index, term.coefficient) for term in side.form.terms] == [((0, 0), 1)]
    assert sorted(-float(s.form.source_function.constant) for s in sides) == [0, 1]


def advection_both_ends() -> None:
    problem = build("advection_both_ends")
    form = statement_on(problem, "the equation").form
    assert {term.multi_index: term.coefficient for term in form.terms} == {(1, 0): 1, (0, 1): 1}
    assert form.source_function.constant == 0
    # The same characteristic x − t = 1/2 at the first time and at the right end.
    start, end = np.array([[0.5, 0.0]]), np.array([[1.0, 0.5]])
    first, lateral = statement_on(problem, "Initial"), statement_on(problem, "Dirichlet")
    for statement, point in ((first, start), (lateral, end)):
        assert isinstance(statement.place, OnPart)
        assert statement.place.part.contains(point).all()
    assert -first.form.source_function(start)[0] == pytest.approx(1)
    assert -lateral.form.source_function(end)[0] == 0


def periodic_incompatible() -> None:
    problem = build("periodic_incompatible")
    form = statement_on(problem, "the equation").form
    assert [(term.multi_index, term.coefficient) for term in form.terms] == [((2,), -1)]
    # u' is the same at both ends, so that the integral of −u'' is zero.
    assert any(s.form.terms[0].multi_index == (1,) for s in problem.statements if s.name.startswith("Periodic"))
    X, weights = problem.domain.quadrature(20)
    assert -weights @ form.source_function(X) == pytest.approx(1)


NONE: Mapping[str, Callable[[], None]] = {
    function.__name__: function
    for function in (
        neumann_incompatible,
        contradictory_dirichlet,
        helmholtz_resonant,
        overdetermined_flux,
        advection_both_ends,
        oscillator_resonant,
        periodic_incompatible,
    )
}

# The solution, the change at wave number k, the condition it changes (by at most 1), and how much it changes elsewhere.
BLOW_UP = {
    "heat_backward": (
        sp.exp(pi**2 * (1 - t)) * sin(pi * x),
        lambda k: sp.exp(k**2 * pi**2 * (1 - t)) * sin(k * pi * x),
        "Condition(",
        lambda k: ({x: sp.Rational(1, 2 * k), t: 0}, np.exp(k**2 * np.pi**2)),
    ),
    "laplace_cauchy": (
        sp.cosh(pi * x) * sin(pi * y),
        lambda k: sp.cosh(k * pi * x) * sin(k * pi * y),
        "Dirichlet(u = sin(pi*y)",
        lambda k: ({x: 1, y: sp.Rational(1, 2 * k)}, np.cosh(k * np.pi)),
    ),
}


def test_every_case_has_its_proof() -> None:
    assert list(MANY) == names("non-unique")
    assert list(NONE) == names("inconsistent")
    assert list(BLOW_UP) == names("unstable")
    assert len(CASES) == len(MANY) + len(NONE) + len(BLOW_UP) >= 10


@pytest.mark.parametrize("name", CASES)
def test_it_builds_and_says_why(name: str) -> None:
    case = CASES[name]
    problem = case.problem()
    assert problem.is_linear
    assert problem.exact is None
    assert case.words == ("ill-posed", case.kind)
    assert case.problem.__name__ == name
    assert len(inspect.getdoc(case.problem) or "") > 80
    assert str(problem) == str(case.problem())
    assert not any(isinstance(s.place, AtPoints) for s in problem.statements)
    assert sum(isinstance(s.place, Interior) for s in problem.statements) == len(problem.fields)


@pytest.mark.parametrize("name", MANY)
def test_non_unique_ones_have_two_solutions(name: str) -> None:
    problem = build(name)
    solution, null = MANY[name]
    assert any(expression != 0 for expression in null.values())
    for factor in (0, 1, -3):
        claimed = {label: expression + factor * null.get(label, 0) for label, expression in solution.items()}
        assert max(defects(problem, claimed).values()) < 1e-9


@pytest.mark.parametrize("name", NONE)
def test_inconsistent_ones_contradict_themselves(name: str) -> None:
    NONE[name]()


@pytest.mark.parametrize("name", BLOW_UP)
def test_unstable_ones_turn_a_bounded_change_into_an_unbounded_one(name: str) -> None:
    problem = build(name)
    solution, change, condition, elsewhere = BLOW_UP[name]
    assert max(defects(problem, {"u": solution}).values()) < 1e-9
    for k in (2, 3):
        found = defects(problem, {"u": solution + change(k)})
        data = statement_on(problem, condition)
        assert {label for label, defect in found.items() if defect > 1e-9} <= {data.name}
        moved = residual(data, problem, Derivatives({"u": solution + change(k)}, problem.domain.coordinates))
        assert 0.9 < np.abs(moved).max() <= 1 + 1e-12
        place, size = elsewhere(k)
        assert float(change(k).subs(place)) == pytest.approx(size)
    assert elsewhere(3)[1] > 20 * elsewhere(2)[1]


def test_the_mapping_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        CASES["mine"] = CASES["pure_neumann"]  # type: ignore[index]
