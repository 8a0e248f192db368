"""Problems of strangers: their references fulfil what is posed, without any solve."""

from __future__ import annotations

import pytest
from benchmarks.sets import cases
from benchmarks.sets.drawn import drawn_case

from pibls.problem import Across
from test_unseen import Known, check_jumps, check_open, relative

pytestmark = pytest.mark.slow
SETS = ("strangers", "strangers_aside", "lookalikes", "lookalikes_aside", "slight")
FORGOTTEN = {**cases("forgotten"), **cases("forgotten_aside")}
WELL_POSED = {name: case for of in SETS for name, case in cases(of).items() if case.expected == "converged"}
# Those without an expression are compared with SciPy, or with a formula that has a root of another one in it.
BY_SCIPY = ["strip_that_buckled", "nozzle_after_hamel", "enzyme_in_a_gel", "paint_between_plates"]
BY_SCIPY += ["epidemic_in_a_city", "fast_and_slow_reactions", "comet", "book_that_tumbles"]
BY_SCIPY += ["plasma_in_a_cage", "star_in_a_galaxy", "slab_before_the_spark"]
BY_SCIPY += ["ink_in_a_sponge"]  # its slope jumps
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


@pytest.mark.parametrize("number", range(100))
def test_solutions_of_drawn_problems_fulfil_every_statement(number: int) -> None:
    problem = drawn_case(number).make()
    derivatives = Known(problem)
    for statement in problem.statements:
        assert relative(statement, problem, derivatives).max() < 1e-8, statement.name


@pytest.mark.parametrize("name", JUMPING)
def test_reference_goes_on_across_jumps(name: str) -> None:
    check_jumps(WELL_POSED[name].make())


# What can be added to any solution, one expression per field, in the order in which the equations name them.
OPEN = {
    "bearing_without_a_pressure": ("1", "0", "0"),
    "ring_in_step": ("sin(2*x)",),
    "end_that_feeds_itself": ("x",),
    "sheet_on_a_rail": ("0", "1"),
    "carousel": ("x**2 + y**2 - 4",),
    "lid_with_half_a_rim": ("x**2 + y**2 - 1",),
    "cube_without_a_bolt": ("y - 1/2", "1/2 - x", "0"),
    "honey_without_a_pressure": ("0", "1", "0", "0"),
    "rod_without_a_side": ("sin(pi*z)*exp(pi*x)",),
    "ball_that_feeds_itself": ("x",),
}


@pytest.mark.parametrize("name", OPEN)
def test_solutions_are_not_unique(name: str) -> None:
    check_open(FORGOTTEN[name].make(), OPEN[name])


def test_forgotten_ones_have_no_reference() -> None:
    assert len(FORGOTTEN) == 60
    assert all(case.make().exact is None for case in FORGOTTEN.values())
