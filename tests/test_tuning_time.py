"""Which way through time a solve takes, and what it says of a way that cannot be taken."""

from __future__ import annotations

import pytest

import pibls as pb
from pibls.errors import InputError
from pibls.solution.evolved import EvolvedNetwork


def test_nonlinear_evolutions_are_solved_by_lines_and_linear_ones_in_space_time():
    front = pb.solve(pb.problems.fisher_kpp())
    assert isinstance(front.network, EvolvedNetwork)
    assert front.status == "converged"
    assert front.true_error() < 1e-6
    heat = pb.problems.heat_robin()
    assert not isinstance(pb.solve(heat).network, EvolvedNetwork)
    by_lines = pb.solve(heat, time="lines")
    assert isinstance(by_lines.network, EvolvedNetwork)
    assert by_lines.true_error() < 1e-6
    assert 0.1 < by_lines.true_error() / by_lines.error_estimate < 10


def test_a_shock_is_resolved_without_being_told_where_it_is():
    seen = []
    solution = pb.solve(pb.problems.burgers(), progress=seen.append, budget=30)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-6
    assert seen


def test_ways_that_cannot_be_taken_are_refused():
    with pytest.raises(InputError, match="cannot be solved with time='lines'"):
        pb.solve(pb.problems.poisson(), time="lines")
    with pytest.raises(InputError, match="'time' parameter of solve"):
        pb.solve(pb.problems.heat_robin(), time="windows")
    with pytest.raises(InputError, match="cannot grow"):
        pb.solve(pb.problems.heat_robin(), time="lines").grow(nodes=10)
