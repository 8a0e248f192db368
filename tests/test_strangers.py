"""Problems of strangers: their references fulfil what is posed, without any solve."""

from __future__ import annotations

import pytest
from benchmarks.sets import cases

from pibls.problem import Across
from test_unseen import Known, check_jumps, relative

pytestmark = pytest.mark.slow
SETS = ("strangers", "strangers_aside")
WELL_POSED = {name: case for of in SETS for name, case in cases(of).items() if case.expected == "converged"}
# Those without an expression are compared with SciPy.
BY_SCIPY = ["strip_that_buckled", "nozzle_after_hamel", "enzyme_in_a_gel", "paint_between_plates"]
BY_SCIPY += ["epidemic_in_a_city", "fast_and_slow_reactions", "comet", "book_that_tumbles"]
JUMPING = ["seed_in_a_plate", "oval_of_copper", "folded_layers_of_rock", "glued_joint", "ring_shrunk_onto_a_hub"]
JUMPING += ["two_steels_that_warm", "pearl_in_a_box", "light_through_a_pane"]
JUMPING += ["wall_of_brick_and_wool", "oval_that_cools"]


@pytest.mark.parametrize("name", [name for name in WELL_POSED if name not in BY_SCIPY])
def test_reference_fulfils_every_statement(name: str) -> None:
    problem = WELL_POSED[name].make()
    derivatives = Known(problem)
    for statement in problem.statements:
        if not isinstance(statement.place, Across):
            assert relative(statement, problem, derivatives).max() < 1e-9, statement.name


@pytest.mark.parametrize("name", JUMPING)
def test_reference_goes_on_across_jumps(name: str) -> None:
    check_jumps(WELL_POSED[name].make())
