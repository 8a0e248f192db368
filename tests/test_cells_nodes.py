"""Cells of other nodes than sines: every smooth activation, and enhancement nodes."""

from __future__ import annotations

import pytest
import sympy as sp

import pibls as pb
from internals import draw_reference

KINDS = [pb.Cells(name) for name in ("tanh", "sigmoid", "softplus", "swish", "gaussian", "arctan")]
KINDS += [pb.Cells("tanh", "tanh"), pb.Cells("sin", "tanh"), pb.Cells("sigmoid", "sin")]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", ["helmholtz", "l_shape", "cubic_reaction"])
def test_every_kind_of_nodes_solves_to_the_tolerance(kind, name):
    solution = pb.solve(getattr(pb.problems, name)(), tol=1e-5, method=kind)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-5
    assert solution.diagnostics.settings["activation"] == kind.activation


def test_an_evolution_is_solved_in_space_and_time():
    solution = pb.solve(pb.problems.advection(), tol=1e-5, method=pb.Cells("tanh"))
    assert solution.status == "converged"
    assert solution.diagnostics.method == "Cells"


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_solutions_grow_with_the_nodes_they_have(kind):
    coarse = pb.solve(pb.problems.helmholtz(), tol=1e-3, method=kind)
    fine = coarse.grow(nodes=200)
    assert fine.diagnostics.settings["activation"] == kind.activation
    assert fine.true_error() < coarse.true_error()


def test_sines_are_what_they_were():
    assert draw_reference(2, 6, 0) is draw_reference(2, 6, 0, pb.Cells())
    plain, told = (pb.solve(pb.problems.helmholtz(), tol=1e-4, **own) for own in ({}, {"method": pb.Cells()}))
    assert plain.true_error() == told.true_error()


@pytest.mark.parametrize("kind", [{"activation": "relu"}, {"enhancement": "relu"}])
def test_kinks_are_refused(kind):
    with pytest.raises(pb.PiblsError, match="smooth"):
        pb.Cells(**kind)


def test_unknown_names_are_refused():
    with pytest.raises(pb.PiblsError, match="Did you mean 'tanh'"):
        pb.Cells("tahn")


def test_what_does_not_go_with_cells_is_refused():
    with pytest.raises(pb.PiblsError, match=r"does not go with method=Cells"):
        pb.solve(pb.problems.advection(), method=pb.Cells(), time="lines")


def test_many_coordinates_are_refused():
    with pytest.raises(pb.PiblsError, match="one to three coordinates"):
        pb.solve(four(), method=pb.Cells())


def four():
    symbols = pb.coordinates("a b c d")
    u = pb.field("u", *symbols)
    box = pb.Box(*((s, 0, 1) for s in symbols))
    return pb.Problem(sp.Eq(pb.laplacian(u), 1), box, [pb.Dirichlet(u, 0)])
