"""Cells tell problems that determine their solution from those that do not."""

from __future__ import annotations

import re

import pytest
import sympy as sp

import pibls as pb
from pibls.cells.posed import even_answers
from pibls.problems import ill_posed

WORDS = {"non-unique": "not unique", "unstable": "unstable", "inconsistent": "contradict|no solution"}
# Those take a search for the statements that contradict each other, which tests/test_tuning_zoo.py waits for.
SLOW = {name for name, case in ill_posed().items() if case.kind == "inconsistent"} - {"helmholtz_resonant"}
QUICK = sorted(set(ill_posed()) - SLOW)
WELL_POSED = [
    *("advection", "anisotropic_mixed", "beam", "biharmonic", "boundary_layer", "convection_diffusion"),
    *("damped_oscillator", "diffusion_reaction", "elasticity", "heat_2d", "heat_robin", "helmholtz", "helmholtz_high"),
    *("klein_gordon", "l_shape", "maxwell_1d", "neumann_gauge", "oscillator", "periodic_advection", "poisson"),
    *("robin_disk", "schroedinger", "stokes", "variable_coefficient", "wave"),
]


@pytest.mark.parametrize("name", QUICK)
def test_what_nothing_determines_is_told_whatever_the_seed(name):
    case = ill_posed()[name]
    # Seed zero is that of tests/test_tuning_zoo.py.
    solution = pb.solve(case.problem(), seed=1, budget=0.3)
    assert solution.status == "ill-posed"
    assert re.search(WORDS[case.kind], solution.diagnostics.message)


@pytest.mark.parametrize("name", WELL_POSED)
def test_well_posed_problems_answer_little(name):
    answers = even_answers(pb.problems.catalogue()[name](), 0)
    assert answers.sizes[-1] < 100
    assert not answers.is_unseen
    assert not answers.is_unstable


def test_what_is_wrong_is_said_with_its_place():
    x, y = pb.coordinates("x y")
    u, v = pb.field("u", x, y), pb.field("v", x, y)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    free = pb.Problem(
        [pb.laplacian(u) - 1, pb.laplacian(v) - 1], square, [pb.Dirichlet(u, 0), pb.Dirichlet(v, 0, on=square.left)]
    )
    answers = even_answers(free)
    assert answers.is_unseen
    assert answers.field == "v"
    assert answers.place[0] > 0.3  # away from where it is held
    assert "change of v, largest near x=" in answers.in_words()


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_near_a_resonance_answers_grow(shift):
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    problem = pb.Problem(pb.laplacian(u) + (2 * sp.pi**2 + shift) * u - 1, square, [pb.Dirichlet(u, 0)])
    answers = even_answers(problem)
    assert answers.is_unseen == (shift == 0.0)
    if shift:
        assert answers.sizes[-1] < 1e3
