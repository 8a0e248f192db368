"""How much each block of rows counts."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import InputError
from pibls.features import draw_network
from pibls.geometry import Points
from pibls.system import Balanced, Penalties, assemble


def heat(weight=1.0):
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    domain = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    conditions = [
        pb.Dirichlet(u, 0, weight=weight),
        pb.Initial(u, sp.sin(sp.pi * x)),
        pb.Dirichlet(u.diff(x), 3, on=domain.initial),
        pb.Observation(u, [[0.5, 0.0]], [1.0]),
    ]
    return pb.Problem(sp.Eq(u.diff(t), u.diff(x, 2)), domain, conditions)


def system_of(problem, scaling):
    network = draw_network(np.random.default_rng(0), problem.domain.bounds, [("sin", 20, 2.0)])
    return assemble(problem, Points.sample(problem, interior=40), network, scaling)


def row_norms(system):
    return [np.sqrt(np.mean(np.linalg.norm(system.matrix[b.rows], axis=1) ** 2)) for b in system.blocks]


def test_balanced_rows_have_norm_one_times_weight():
    assert row_norms(system_of(heat(), Balanced())) == pytest.approx([1] * 5, rel=1e-12)
    assert row_norms(system_of(heat(weight=7.0), Balanced())) == pytest.approx([1, 7, 1, 1, 1])


def test_balanced_is_the_default_and_does_not_depend_on_units():
    problem = heat()
    default = system_of(problem, None)
    assert row_norms(default) == pytest.approx([1] * 5)


def test_penalties_are_exactly_the_square_roots_of_the_paper():
    plain = system_of(heat(), Penalties())
    weighted = system_of(heat(weight=2.0), Penalties(boundary=49.0, initial=9.0))
    assert [b.scale for b in plain.blocks] == [1.0] * 5
    # Both conditions at the first time take λ_I, however they are written; an observation there is none.
    assert [b.scale for b in weighted.blocks] == [1.0, 2.0 * 7.0, 3.0, 3.0, 7.0]
    for block in weighted.blocks:
        assert (weighted.matrix[block.rows] == block.scale * plain.matrix[block.rows]).all()
        assert (weighted.rhs[block.rows] == block.scale * plain.rhs[block.rows]).all()


def test_rows_of_zeros_keep_their_weight():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    flat = pb.Condition(sp.Eq((x - 1) * u, 0), on=[1.0], weight=5.0)
    problem = pb.Problem(sp.Eq(u.diff(x), 1), pb.Interval((x, 0, 1)), [flat])
    system = system_of(problem, Balanced())
    assert system.blocks[1].norm == 0
    assert system.blocks[1].scale == 5.0
    assert np.isfinite(system.matrix).all()


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), "1", True])
def test_weights_must_be_positive_numbers(value):
    with pytest.raises(InputError, match="'boundary' parameter of Penalties"):
        Penalties(boundary=value)
    with pytest.raises(InputError, match="'initial' parameter of Penalties"):
        Penalties(initial=value)
