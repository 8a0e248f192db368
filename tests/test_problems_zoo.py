"""Every problem of the catalogue against its own equations, so that a new one is checked as soon as it is listed."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest
import sympy as sp

from pibls import problems
from pibls.errors import InputError
from pibls.problem import AtPoints, Average, Problem
from pibls.problems import catalogue, evolutions
from test_problems_residuals import defects

CATALOGUE = {name: make for name, make in catalogue(exact=True).items() if name not in evolutions()}
NAMES = sorted(CATALOGUE)

VARIANTS: Mapping[str, Callable[[], Problem]] = {
    "advection_beta(100)": lambda: problems.advection_beta(100),
    "anisotropic_mixed(-0.9)": lambda: problems.anisotropic_mixed(-0.9),
    "annulus(0.1)": lambda: problems.annulus(0.1),
    "beam(1)": lambda: problems.beam(1),
    "bratu_1d(0.01)": lambda: problems.bratu_1d(0.01),
    "bratu_1d(3.5)": lambda: problems.bratu_1d(3.5),
    "burgers_steady(0.01)": lambda: problems.burgers_steady(0.01),
    "convection_diffusion(1e-3)": lambda: problems.convection_diffusion(1e-3),
    "convection_diffusion(10)": lambda: problems.convection_diffusion(10),
    "damped_oscillator(0, 9)": lambda: problems.damped_oscillator(0, 9),
    "damped_oscillator(3.9, 4)": lambda: problems.damped_oscillator(3.9, 4),
    "diffusion_reaction(0.1)": lambda: problems.diffusion_reaction(0.1),
    "elasticity(0)": lambda: problems.elasticity(0),
    "elasticity(0.499)": lambda: problems.elasticity(0.499),
    "heat_nd(7)": lambda: problems.heat_nd(7),
    "helmholtz(pi)": lambda: problems.helmholtz(sp.pi),
    "helmholtz(77.7)": lambda: problems.helmholtz(77.7),
    "kovasznay(1000)": lambda: problems.kovasznay(1000),
    "layer_2d(1e-6)": lambda: problems.layer_2d(1e-6),
    "layer_2d(1)": lambda: problems.layer_2d(1),
    "maxwell_1d(0.5)": lambda: problems.maxwell_1d(0.5),
    "p_laplacian(2.5)": lambda: problems.p_laplacian(2.5),
    "p_laplacian(8)": lambda: problems.p_laplacian(8),
    "poisson_nd(10)": lambda: problems.poisson_nd(10),
    "poisson_square(1)": lambda: problems.poisson_square(1),
    "poisson_square(40)": lambda: problems.poisson_square(40),
    "robin_disk(0.5)": lambda: problems.robin_disk(0.5),
    "wave(0.5)": lambda: problems.wave(0.5),
}
EVERY = {**CATALOGUE, **VARIANTS}


@cache
def build(name: str) -> Problem:
    return EVERY[name]()


@pytest.mark.parametrize("name", EVERY)
def test_exact_solution_satisfies_every_equation_and_condition(name: str) -> None:
    problem = build(name)
    found = defects(problem)
    assert len(found) == len(problem.statements)
    assert all(defect <= 1e-9 for defect in found.values()), found


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_exact_solution_is_noticed(name: str) -> None:
    problem = build(name)
    assert problem.exact is not None
    # Neither harmonic, nor periodic, nor of mean zero: no equation of the zoo lets it pass.
    bump = sp.exp(sum(problem.domain.coordinates) / 3) / 1000
    for label, expression in problem.exact.items():
        wrong = {**problem.exact, label: expression + bump}
        assert max(defects(problem, wrong).values()) > 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_structure_and_printing(name: str) -> None:
    problem = build(name)
    assert isinstance(problem, Problem)
    assert problem.is_linear == (name in catalogue(linear=True)) == (name not in catalogue(linear=False))
    assert not problem.parameters
    assert problem.exact is not None
    assert tuple(problem.exact) == problem.field_names
    lines = str(problem).splitlines()
    assert lines[0] == "Find " + ", ".join(map(str, problem.fields)) + " with"
    assert len(lines) == 1 + len(problem.equations) + len(problem.conditions)
    rows = problem.latex().splitlines()
    assert rows[0] == r"\begin{aligned}"
    assert rows[-1] == r"\end{aligned}"
    assert len(rows) == 2 + len(problem.equations) + len(problem.conditions)


@pytest.mark.parametrize("name", NAMES)
def test_building_again_gives_the_same_problem(name: str) -> None:
    first, second = build(name), CATALOGUE[name]()
    assert str(first) == str(second)
    assert first.exact == second.exact
    assert first.domain == second.domain


@pytest.mark.parametrize("name", NAMES)
def test_function_is_documented_and_keyword_friendly(name: str) -> None:
    function = CATALOGUE[name]
    assert function is getattr(problems, name)
    assert function.__name__ == name
    documentation = inspect.getdoc(function) or ""
    assert ">>>" in documentation
    for argument in inspect.signature(function).parameters.values():
        assert argument.default is not inspect.Parameter.empty
        assert argument.name in documentation.split("Parameters")[1]


def test_catalogue_is_everything_solvable_the_package_exports_and_cannot_be_changed() -> None:
    others = {
        "IllPosed",
        "Reference",
        "about",
        "catalogue",
        "everyday",
        "everyday_error",
        "evolutions",
        "ill_posed",
        "inverse",
        "references",
        "tags",
        "without_exact",
        "zoo",
        *problems.without_exact(),
        *problems.references(),
    }
    assert set(CATALOGUE) == set(problems.__all__) - others
    assert others <= set(problems.__all__)
    with pytest.raises(TypeError):
        catalogue()["mine"] = problems.poisson  # type: ignore[index]


@pytest.mark.parametrize("name", NAMES)
def test_tags_say_how_hard_and_how_many_coordinates(name: str) -> None:
    hard = {"boundary_layer", "helmholtz_high", "l_shape", "layer_2d"}
    expected = {"hard" if name in hard else "smooth", f"{len(build(name).domain.coordinates)}d"}
    assert problems.tags(name) == (expected if build(name).is_linear else expected | {"nonlinear"})


@pytest.mark.parametrize("name", ["nobody", "catalogue", 3, None])
def test_tags_of_what_is_not_in_the_catalogue_are_refused(name: object) -> None:
    with pytest.raises(InputError, match="The 'name' parameter of tags must be one of 'advection', "):
        problems.tags(name)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "label"), [("neumann_gauge", "u"), ("stokes", "p")])
def test_only_the_mean_fixes_a_constant(name: str, label: str) -> None:
    problem = build(name)
    assert problem.exact is not None
    found = defects(problem, {**problem.exact, label: problem.exact[label] + 1})
    off = {statement for statement, defect in found.items() if defect > 1e-9}
    assert off == {s.name for s in problem.statements if isinstance(s.place, Average)}


@pytest.mark.parametrize("name", NAMES)
def test_domain_and_exact_solution_are_finite_everywhere(name: str) -> None:
    problem = build(name)
    X = problem.domain.sample(200, seed=3)
    values = problem.exact_values(X)
    assert set(values) == set(problem.field_names)
    assert all(np.isfinite(v).all() and np.ptp(v) > 1e-3 for v in values.values())
    assert not any(isinstance(s.place, AtPoints) for s in problem.statements)


@pytest.mark.parametrize("name", ["burgers", "allen_cahn", "gray_scott", "lorenz", "variable_coefficient_data", "motz"])
def test_problems_with_functions_and_parts_can_be_pickled(name):
    problem = {**catalogue(), **problems.everyday()}[name]()
    assert str(pickle.loads(pickle.dumps(problem))) == str(problem)


def test_the_catalogue_holds_all_and_knows_which_are_linear_and_have_an_exact_solution() -> None:
    found = catalogue()
    assert {*evolutions(), "cavity", "l_shape_unit_load", *CATALOGUE} <= set(found)
    for name in {*found} - {*CATALOGUE}:
        problem = found[name]()
        assert problem.is_linear == (name in catalogue(linear=True)), name
        assert (problem.exact is not None) == (name in catalogue(exact=True)), name
        assert ("nonlinear" in problems.tags(name)) != problem.is_linear
