"""The printed numbers agree with each other as far as they go, and the search spaces are those of the paper."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pibls as pb
from internals import BEYOND, EVALUATIONS, METHODS, PAPER_NAMES, SPACE_SCALES, TIME_SCALES, grid, published, scales

PAPER = published()
WIDTHS = range(3, 204, 20)


def accuracies():
    for problem, method, part in product(PAPER_NAMES, METHODS, ("train", "test")):
        if PAPER.accuracy(problem, method, part, "mse") is not None:
            yield problem, method, part


@pytest.mark.parametrize(("problem", "method", "part"), list(accuracies()))
def test_printed_errors_belong_together(problem, method, part):
    def value(metric):
        return PAPER.accuracy(problem, method, part, metric)

    assert value("rmse") ** 2 == pytest.approx(value("mse"), rel=2e-3)
    assert value("relative_rmse") ** 2 == pytest.approx(value("relative_mse"), rel=2e-3)
    assert value("mae") <= value("rmse")
    if value("linf") is not None:
        assert value("rmse") <= value("linf")
        assert value("linf") / value("relative_linf") == pytest.approx(1.5, rel=2e-3)


def test_what_the_paper_leaves_out_is_none():
    assert PAPER.accuracy("poisson_square", "PI-ELM", "test", "mse") is None
    assert PAPER.accuracy("advection", "PI-BLS", "test", "r2") is None
    assert PAPER.seconds("advection", "BPI-ELM") is None
    assert PAPER.parameters("advection", 31, "PINN") is None
    assert PAPER.parameters("advection", 30, "PI-ELM") is None


@pytest.mark.parametrize("problem", PAPER_NAMES)
def test_times_parameters_and_sizes(problem):
    assert len(PAPER.sizes(problem)) == 6
    assert PAPER.table_size(problem) == PAPER.sizes(problem)[-1]
    for method in ("PINN", "PI-BLS"):
        total, share = PAPER.seconds(problem, method), PAPER.seconds(problem, method, per_point=True)
        assert total / PAPER.time_size(problem) == pytest.approx(share, rel=6e-3)
    for n in PAPER.sizes(problem):
        large, small, percent, factor = (
            PAPER.parameters(problem, n, column) for column in ("PINN", "PI-BLS", "reduction", "factor")
        )
        assert 100 * (1 - small / large) == pytest.approx(percent, abs=0.011)
        assert large / small == pytest.approx(factor, rel=1e-3)
        assert large in {(d + 1) * h + (h + 1) * h + h + 1 for h in WIDTHS for d in (1, 2)}
        assert small in {c * p + q for c, p, q in product((5, 13, 21), (10, 30, 50), (25, 65, 105))}


def test_test_points():
    assert [PAPER.test_size(name) for name in ("advection", "poisson_star", "diffusion_reaction")] == [
        100,
        10000,
        10000,
    ]


@pytest.mark.parametrize(
    ("problem", "method", "size"),
    [
        ("advection", "PI-BLS", 243),
        ("poisson_star", "PI-BLS", 729),
        ("diffusion_reaction", "PI-BLS", 729),
        ("advection", "PINN", 99),
        ("poisson_square", "PI-ELM", 99),
        ("diffusion_reaction", "BPI-ELM", 297),
        ("diffusion_reaction", "PINN", 297),
    ],
)
def test_the_paper_s_search_spaces(problem, method, size):
    space = grid(problem, method)
    methods = space.methods(dict.fromkeys(space.space["activation"], 2.0))
    assert space.size == len(methods) == len(set(map(repr, methods))) == size
    assert {m.activation for m in methods} == {"relu", "sigmoid", "tanh"}
    assert {m.lambda_b for m in methods} == {1e-4, 1e-2, 1.0}
    wanted = {1e-4, 1e-2, 1.0} if problem == "diffusion_reaction" else {None}
    assert {m.lambda_i for m in methods} == wanted
    if method == "PI-BLS":
        assert {m.nodes for m in methods} >= {75, 1155}
        assert {m.lambda_reg for m in methods} == ({1e-4, 1e-2, 1.0} if "poisson" in problem else {0.0})
    else:
        attribute = "width" if method == "PINN" else "nodes"
        assert {getattr(m, attribute) for m in methods} == set(WIDTHS)


def test_pilots_are_the_widest_networks_at_every_scale():
    problem = pb.problems.diffusion_reaction()
    pilots = grid("poisson_star", "PI-BLS").pilots("tanh", scales(problem))
    assert [m.scale for m in pilots] == list(product(SPACE_SCALES, TIME_SCALES))
    assert {(m.nodes, m.lambda_b, m.lambda_reg) for m in pilots} == {(1155, 1.0, 1e-4)}


def test_activations_without_a_scale_are_left_out():
    methods = grid("advection", "PI-ELM").methods({"tanh": 3.0})
    assert {(m.activation, m.scale) for m in methods} == {("tanh", 3.0)}


def test_the_first_weights_of_a_pinn_and_its_longer_final_training():
    space = grid("diffusion_reaction", "PINN")
    (first, *_) = space.methods({"tanh": 6.0})
    assert (first.layers, first.scale) == (2, 6.0)
    assert {pilot.width for pilot in space.pilots("tanh", SPACE_SCALES)} == {103}
    assert sum(space.final.values()) == EVALUATIONS == 30_000


def test_beyond_the_paper_rows_are_balanced():
    space = grid("poisson_star", "PI-BLS", beyond=True)
    assert set(space.space) == set(BEYOND)
    assert all(m.lambda_b is None and m.lambda_reg == 0.0 for m in space.methods({"sin": 2.0}))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PAPER.sizes("burgers"), "problems of the paper"),
        (lambda: PAPER.space("advection", "FEM"), "searches the settings"),
        (lambda: grid("advection", "FEM"), "method"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(pb.PiblsError, match=words):
        call()


def star_averages(radius, depth, petals=5):
    """Mean, mean square and variance of the star's solution over points r = R(θ)·U, and their errors over 10 000."""
    angles = (np.arange(400) + 0.5) / 400 * 2 * np.pi
    nodes, weights = np.polynomial.legendre.leggauss(24)
    r = radius * (1 + depth * np.cos(petals * angles))[:, None] * (nodes + 1) / 2
    u = np.exp(-(2 * (r * np.cos(angles)[:, None]) ** 2 + 4 * (r * np.sin(angles)[:, None]) ** 2)) + 0.5
    mean, square, fourth = (float((u**k @ weights).mean() / 2) for k in (1, 2, 4))
    variance, central = square - mean**2, float(((u - mean) ** 4 @ weights).mean() / 2)
    spreads = variance, fourth - square**2, central - variance**2
    return np.array([mean, square, variance]), np.sqrt(np.array(spreads) / 1e4)


def test_the_star_has_the_averages_of_the_published_table():
    mae, relative_mae, mse, relative_mse, r2 = (
        published().accuracy("poisson_star", "PINN", "test", name)
        for name in ("mae", "relative_mae", "mse", "relative_mse", "r2")
    )
    told = np.array([mae / relative_mae, mse / relative_mse, mse / (1 - r2)])
    assert told == pytest.approx([1.181, 1.489, 0.095], abs=5e-4)
    found, errors = star_averages(0.71, 0.65)
    assert np.abs(found - told) / errors == pytest.approx([0.2, 0.4, 0.8], abs=0.05)
    fits = {
        (radius, depth)
        for radius in range(64, 80)
        for depth in range(30, 95)
        if (np.abs(told - (own := star_averages(radius / 100, depth / 100))[0]) < 2 * own[1]).all()
    }
    assert ({radius for radius, _ in fits}, {depth for _, depth in fits}) == ({70, 71, 72}, {62, 63, 64, 65, 66})
