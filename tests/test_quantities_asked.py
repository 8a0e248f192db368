"""Quantities asked for before there is a solution, parameters in them, forces, and the rest of a boundary."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import pibls as pb

x, y, t = pb.coordinates("x y t")
line = pb.Interval((x, 0, 1))
square = pb.Rectangle((x, 0, 1), (y, 0, 1))


def _bar() -> pb.Problem:
    """Return a bar with the solution T = ambient + 1/h + 1/(2k) (1 − x²) for heat 1 in it."""
    T, k, h = pb.field("T", x), pb.parameter("k"), pb.parameter("h")
    ends = [pb.Neumann(T, 0, on=line.left), pb.Convection(T, h=h, ambient=20, on=line.right)]
    return pb.Problem(sp.Eq(-pb.div([k * T.diff(x)]), 1), line, ends)


def test_a_sweep_takes_expressions_with_parameters_and_convection_follows_them() -> None:
    problem = _bar()
    (T,), (h, k) = problem.fields, problem.parameters
    found = pb.sweep(
        problem,
        k=[1, 4],
        h=[2, 5],
        executor=1,
        quantities={
            "left": T.subs(x, 0),
            "loss": pb.integral(h * (T - 20), over=line.right),
            "flux": -k * T.diff(x).subs(x, 1),
        },
    )
    for conductivity in (1, 4):
        for film in (2, 5):
            point = found.sel(k=conductivity, h=film)
            assert float(point.left) == pytest.approx(20 + 1 / film + 1 / (2 * conductivity), abs=1e-6)
            assert float(point.loss) == pytest.approx(1.0, abs=1e-5)
            assert float(point.flux) == pytest.approx(1.0, abs=1e-5)
            assert 0 <= float(point.left_error) < 1e-4


def test_kept_results_of_a_sweep_know_their_parameters(tmp_path: Path) -> None:
    problem = _bar()
    (T,), (h, _) = problem.fields, problem.parameters
    wanted = {"loss": pb.integral(h * (T - 20), over=line.right)}
    first, again = (
        pb.sweep(problem, k=[1], h=[2], executor=1, folder=tmp_path, quantities=wanted).loss.values for _ in range(2)
    )
    assert first == again


def test_an_expression_of_more_than_a_point_is_no_number() -> None:
    problem = _bar().at(k=1, h=1)
    (T,) = problem.fields
    solution = pb.solve(problem)
    with pytest.raises(pb.PiblsError, match=r"single number.*\.subs\(\{x: 0\}\)"):
        _ = solution.value(T).quantity
    with pytest.raises(pb.PiblsError, match="outside the domain"):
        _ = solution.value(T.subs(x, 3)).quantity
    with pytest.raises(pb.PiblsError, match=r"quantities\['left'\].*maximum"):
        pb.sweep(_bar(), k=[1], h=[1], executor=1, quantities={"left": 3})


def test_a_value_at_a_point_has_the_error_of_that_point() -> None:
    u = pb.field("u", x, y)
    solution = pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u), sp.exp(3 * x)), square, [pb.Dirichlet(u, 0)]), tol=1e-4)
    found = solution.value(u.diff(x).subs({x: 0.3, y: 0.6})).quantity
    values = solution.value(u.diff(x))
    assert found.value == values([[0.3, 0.6]])[0]
    assert found.error == values.error([[0.3, 0.6]])[0]


def test_a_goal_may_be_an_expression() -> None:
    problem = _bar().at(k=1, h=1)
    solution = pb.solve(problem, goal=problem.fields[0].subs(x, 0), tol=1e-8)
    assert solution.status == "converged"
    assert solution([0.0])[0] == pytest.approx(21.5, abs=1e-6)


@pytest.mark.parametrize("plane", ["stress", "strain"])
def test_a_heated_plate_between_walls_is_pressed(plane: str) -> None:
    u, v, T = (pb.field(name, x, y) for name in "uvT")
    young, poisson, alpha = 200.0, 0.25, 0.01
    stress = pb.stress([u, v], young=young, poisson=poisson, plane=plane, expansion=alpha * (T - 20))
    solution = pb.solve(
        pb.Problem(
            [sp.Eq(pb.laplacian(T), 0), *(sp.Eq(pb.div(row), 0) for row in stress.tolist())],
            square,
            [
                pb.Dirichlet(T, 70),
                *pb.Symmetry([u, v], on=square.left | square.right | square.bottom),
                *pb.Traction(stress, 0, on=square.top),
            ],
        )
    )
    pressed = -young * alpha * 50 / (1 if plane == "stress" else 1 - poisson)
    assert solution.mean(stress[0, 0]).value == pytest.approx(pressed, rel=1e-5)
    across = 0.0 if plane == "stress" else pressed
    assert solution.mean(pb.von_mises(stress)).value == pytest.approx(
        math.sqrt(pressed**2 + across**2 - pressed * across), rel=1e-5
    )
    for force in (solution.force(square.right), solution.force(square.right, [u, v])):
        assert [entry.value for entry in force] == pytest.approx([pressed, 0.0], abs=1e-3)
    moved = solution.plot(T, deformed=True, n=9).axes[0].get_xlabel()
    assert moved == solution.plot(T, deformed=(u, v), n=9).axes[0].get_xlabel() != "x"


def test_displacements_are_in_the_order_of_the_coordinates_whatever_their_names() -> None:
    b, a = pb.field("b", x, y), pb.field("a", x, y)
    stress = pb.stress([b, a], young=2, poisson=0, plane="stress")
    sides = [*pb.Symmetry([b, a], on=square.left | square.bottom), *pb.Traction(stress, [3, 0], on=square.right)]
    equations = [sp.Eq(pb.div(row), 0) for row in stress.tolist()]
    pulled = pb.solve(pb.Problem(equations, square, [*sides, *pb.Traction(stress, 0, on=square.top)]), tol=1e-4)
    assert [entry.value for entry in pulled.force(square.right)] == pytest.approx([3.0, 0.0], abs=1e-4)


def test_the_rest_of_a_boundary_is_named_and_kept(tmp_path: Path) -> None:
    hole = pb.Disk((x, y), (0.5, 0.5), 0.25)
    plate = square - hole
    assert (square.boundary - square.left).name == "right|bottom|top"
    assert (plate.boundary - plate.lift(hole.boundary)).measure == pytest.approx(4.0)
    low = square.boundary.where(lambda X: X[:, 0] < 0.25)
    rest = square.boundary - low
    assert rest.measure == pytest.approx(4 - low.measure, abs=0.05)
    assert not rest.contains(low.sample(50).points).any()
    assert (square.left - square.boundary).empty
    with pytest.raises(pb.PiblsError, match="same domain"):
        _ = square.boundary - hole.boundary
    u = pb.field("u", x, y)
    ends = [pb.Neumann(u, 1, on=square.left), pb.Dirichlet(u, 0, on=square.boundary - square.left)]
    solution = pb.solve(pb.Problem(sp.Eq(pb.laplacian(u), 0), square, ends), tol=1e-3)
    again = pb.load(solution.save(tmp_path / "run.pibls"))
    assert again.problem.conditions[1].on == square.boundary - square.left


def test_a_second_condition_of_the_same_order_on_a_part_is_recognised() -> None:
    u = pb.field("u", x, y)
    conditions = [pb.Neumann(u, 1, on=square.left), pb.Robin(u, 1, 1, 0)]
    solution = pb.solve(pb.Problem(sp.Eq(pb.laplacian(u), 0), square, conditions))
    assert solution.status == "ill-posed"
    assert "Neumann(dn(u) = 1 on left)" in solution.diagnostics.message
    assert "boundary - part" in solution.diagnostics.message


def test_an_event_that_does_not_happen_says_which_and_by_how_much() -> None:
    u = pb.field("u", t)
    solution = pb.solve(pb.Problem(u.diff(t) + u, pb.TimeInterval(t, 0, 1), [pb.Initial(u, 1)]))
    found = solution.first_time(u < 0.25)
    assert found.value == float("inf")
    assert str(found).startswith("inf: u < 0.25")
    assert "u < 0.25 does not happen until the last time, 1, when both sides still differ by 0.117879" in found.note
    assert pb.first_time(u < 0.5)(solution).value == pytest.approx(math.log(2), abs=1e-6)


def test_the_time_of_a_mean_is_that_of_the_mean_by_lines_and_by_cells() -> None:
    T = pb.field("T", x, t)
    rod = pb.Interval((x, 0, 1))
    problem = pb.Problem(
        sp.Eq(T.diff(t), T.diff(x, 2)),
        rod * pb.TimeInterval(t, 0, 0.3),
        [pb.Dirichlet(T, 0), pb.Initial(T, sp.sin(sp.pi * x))],
    )
    for way in ("space-time", "lines"):
        found = pb.solve(problem, time=way).first_time(T < 0.2, over=rod)
        exact = math.log(10 / math.pi) / math.pi**2
        assert abs(found.value - exact) <= 10 * found.error
        assert found.error < 1e-4
    ends = pb.solve(problem).first_time(T.diff(x) < 1, over=rod.left)
    assert ends.value == pytest.approx(math.log(math.pi) / math.pi**2, abs=1e-5)


def test_a_place_has_no_digits_that_were_not_found() -> None:
    u = pb.field("u", x, y)
    disk = pb.Disk((x, y), (0, 0), 1)
    solution = pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u), 1), disk, [pb.Dirichlet(u, 0)]))
    place = solution.maximum(u).place
    assert place.tolist() == np.round(place, 7).tolist()
    np.testing.assert_allclose(place, 0.0, atol=2e-7)
    assert disk.boundary.contains([solution.maximum(u.diff(x), over=disk.boundary).place]).all()
