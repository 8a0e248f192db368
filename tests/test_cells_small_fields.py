"""Fields that are many times smaller than others: errors are relative to each field's own size."""

from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import prices


def test_a_trace_beside_a_large_field_is_found_at_a_loose_tolerance():
    """The small one is made of a millionth of the large one, which poor cells never follow, however many there are."""
    x, y = pb.coordinates("x y")
    u, v = pb.field("u", x, y), pb.field("v", x, y)
    exact = {u: (x / 5 + 3 * y / 5 + 2) ** 3, v: sp.tanh(8 * (x + y) / sp.sqrt(2)) / 10**6}
    equations = [u + 2 * v - pb.laplacian(u), -2 * u + v - pb.laplacian(v)]
    square = pb.Rectangle((x, -1, 1), (y, -1, 1))
    stated = [sp.Eq(own, own.subs(exact).doit()) for own in equations]
    problem = pb.Problem(stated, square, [pb.Dirichlet(own, value) for own, value in exact.items()], exact=exact)
    solution = pb.solve(problem, tol=1e-4, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 2e-4
    assert solution.diagnostics.settings["degree"] > 9


@pytest.mark.parametrize(
    ("singular", "sizes", "left", "rate"),
    [
        (False, [1.0, 0.5], [0.1, 0.9], 0.0),  # no field is small
        (False, [1.0, 1e-6], [0.5, 0.5], 0.04),  # the small one falls as the large one does, and as the residual
        (False, [1.0, 1e-6], [0.1, 0.5], 0.25),  # it falls more slowly
        (True, [1.0, 1e-6], [0.1, 0.5], 0.8),  # a corner is slower still
        (True, [1.0, 1e-6], [0.1, 0.95], 0.9025),
    ],
)
def test_errors_on_one_tree_fall_no_faster_than_small_fields_and_corners_allow(singular, sizes, left, rate):
    layouts = [SimpleNamespace(reference=SimpleNamespace(degree=degree)) for degree in (8, 10)]
    marker = SimpleNamespace(
        layout=layouts[1], is_singular=lambda fit: singular, left_per_degree=lambda fit: np.array(left)
    )
    last = SimpleNamespace(
        solved=(("rich", layouts[1]), ("poor", layouts[0])),
        is_on_one_tree=True,
        fit_layout=layouts[0],
        better_layout=layouts[1],
        sizes=np.array(sizes),
        fall_of_residual=0.04,
    )
    assert prices.unseen_rate(last, marker) == pytest.approx(rate)
