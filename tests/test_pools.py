"""Problems go to other processes, and solutions and errors come back."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls import errors
from pibls.problem import Data, Field

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))


def bump(a, b):
    return 1 + a * b


def solved(problem):
    return pb.solve(problem, tol=1e-3)


def same(value):
    return value


def refused(_):
    raise errors.TextError("bad", path="a.toml", line=2, column=3, excerpt="u = = 1")


def made(_):
    return pb.Problem(sp.Eq(pb.laplacian(u), 1), SQUARE, [pb.Dirichlet(u, 0)])


PROBLEMS = {
    "data": lambda: pb.Problem(sp.Eq(pb.laplacian(u), pb.data("k", bump, x, y)), SQUARE, [pb.Dirichlet(u, 0)]),
    "star": pb.problems.poisson_star,
    "space-time": pb.problems.heat_robin,
    "lines": pb.problems.damped_oscillator,
    "inverse": pb.problems.inverse.heat_diffusivity,
}


@pytest.fixture(scope="module")
def pool():
    """A process that knows nothing of this one."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_solution_comes_back_from_another_process(pool, name):
    problem = PROBLEMS[name]()
    found, own = pool.submit(solved, problem).result(), solved(problem)
    X = problem.domain.sample(20, seed=3)
    for one, two in ((found(X), own(X)), (found.diagnostics.message, own.diagnostics.message)):
        np.testing.assert_equal(one, two)
    field, along = found.problem.fields[0], found.problem.domain.coordinates[0]
    np.testing.assert_array_equal(found.derivative(field, along)(X), own.derivative(problem.fields[0], along)(X))
    assert str(found.problem) == str(own.problem)
    again = pool.submit(same, found).result()
    np.testing.assert_equal(again(X), own(X))


def test_fields_stay_what_they_are(pool):
    k = pb.data("k", bump, x, y)
    smooth = pb.field("q", x, prior=pb.Smooth(2.0), start=1 + x)
    found, derivative, again, sums = pool.submit(same, (u, u.diff(x, 2), smooth, k + k.subs(x, 0))).result()
    assert isinstance(found, Field)
    assert (found, derivative) == (u, u.diff(x, 2))
    assert (again.prior, again.start) == (pb.Smooth(2.0), 1 + x)
    functions = {node.func for node in sums.atoms(Data)}
    assert len(functions) == 1
    assert functions.pop().function is bump
    # What came before does not change how fields are made there.
    assert str(pool.submit(made, 0).result()) == str(made(0))


def test_errors_come_back(pool):
    with pytest.raises(errors.TextError) as caught:
        pool.submit(refused, 0).result()
    assert (caught.value.path, caught.value.line, caught.value.column) == ("a.toml", 2, 3)
    assert str(caught.value) == "a.toml, line 2, column 3: bad\nu = = 1"


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name.endswith("Error")])
def test_every_error_can_be_pickled(name):
    error = getattr(errors, name)("what is wrong")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
