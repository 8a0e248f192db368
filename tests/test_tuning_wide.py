"""One network is widened until two agree: in many coordinates, on point clouds and devices."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import (
    Fitting,
    Progress,
    choose_scale,
    climb,
    contradiction_of,
    estimated_error,
    refine_scale,
    solve_wide,
)
from pibls.errors import InputError, ProblemError
from pibls.problems import ill_posed

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)


def by_network(name, *, tol=1e-6, budget=10.0, progress=lambda _: None, **options):
    return solve_wide(pb.problems.catalogue()[name](), tol, budget, 0, progress, **options)


def cloud_problem(*, nonlinear=False):
    disk = pb.Disk((x, y), (0, 0), 1)
    rim = disk.boundary.sample(150)
    cloud = pb.PointCloud((x, y), disk.sample(800), boundary=rim.points, normals=rim.normals)
    exact = sp.sin(2 * x) * sp.cos(y)
    equation = pb.laplacian(u) - (u**3 if nonlinear else u)
    load = -5 * exact - (exact**3 if nonlinear else exact)
    return pb.Problem(sp.Eq(equation, load), cloud, [pb.Dirichlet(u, exact)], exact=exact)


@pytest.mark.parametrize(
    "build",
    [
        pb.problems.poisson_nd,
        lambda: pb.problems.heat_nd(3),
        cloud_problem,
        lambda: cloud_problem(nonlinear=True),
    ],
)
def test_many_coordinates_and_point_clouds_converge(build):
    problem = build()
    solution = pb.solve(problem, tol=1e-5, seed=1, time=None if problem.domain.time is None else "space-time")
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-5
    assert 0.1 < solution.error_estimate / solution.true_error() < 10


@pytest.mark.parametrize("name", ["helmholtz", "heat_robin", "stokes", "nonlinear_spring", "minimal_surface"])
def test_devices_converge(name):
    pytest.importorskip("torch")
    solution = pb.solve(pb.problems.catalogue()[name](), device="cpu")
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-5
    # Nothing is known better than to rounding.
    error = max(solution.true_error(), 1e-14)
    assert 0.1 < solution.error_estimate / error < 10


def test_what_networks_do_not_follow_stalls_and_its_estimate_knows():
    solution = by_network("l_shape")
    assert solution.status == "stalled"
    assert "random nodes do not follow" in solution.diagnostics.message
    assert 0.1 < solution.error_estimate / solution.true_error() < 10


def test_the_same_call_counts_the_same_work_and_gives_the_same_bits():
    one, two = (by_network("helmholtz") for _ in range(2))
    assert (one.weights == two.weights).all()
    assert one.error_estimate == two.error_estimate


@pytest.mark.parametrize("name", ["pure_neumann", "contradictory_dirichlet"])
def test_ill_posed_problems_are_told(name):
    solution = solve_wide(ill_posed()[name].problem(), 1e-6, 10.0, 0, lambda _: None)
    assert solution.status == "ill-posed"
    assert "not unique" in solution.diagnostics.message or "contradict" in solution.diagnostics.message


def test_a_start_chooses_between_two_solutions_and_easier_problems_lead_the_way():
    w = pb.field("u", x)

    def bratu(load):
        return pb.Problem(w.diff(x, 2) + load * sp.exp(w), pb.Interval((x, 0, 1)), [pb.Dirichlet(w, 0)])

    small = solve_wide(bratu(1), 1e-6, 10.0, 0, lambda _: None)
    large = solve_wide(bratu(1), 1e-6, 10.0, 0, lambda _: None, start=4 * sp.sin(sp.pi * x))
    near = solve_wide(bratu(1.1), 1e-6, 10.0, 0, lambda _: None, start=large, continuation=[bratu(1)])
    assert [s.status for s in (small, large, near)] == ["converged"] * 3
    assert small([0.5])[0] < 0.2
    assert large([0.5])[0] == pytest.approx(4.0911, abs=1e-3)
    assert near([0.5])[0] > 3
    assert solve_wide(bratu(4), 1e-6, 0.3, 0, lambda _: None).error_estimate >= 1.0


def test_equations_without_a_value_at_zero_start_at_one_or_ask():
    w, line = pb.field("u", x), pb.Interval((x, 0, 1))
    root = pb.Problem(w.diff(x) - 1 / w, line, [pb.Dirichlet(w, 1, on=line.left)], exact=sp.sqrt(1 + 2 * x))
    assert solve_wide(root, 1e-6, 10.0, 0, lambda _: None).true_error() < 1e-6
    nowhere = pb.Problem(w.diff(x) - sp.log(w - 30), line, [pb.Dirichlet(w, 1, on=line.left)])
    with pytest.raises(ProblemError, match=r"no finite value at any start.*zero.*start="):
        solve_wide(nowhere, 1e-6, 10.0, 0, lambda _: None)


def test_interrupt_returns_the_best_so_far():
    def stop(state: Progress) -> None:
        if state.stage == "solve" and state.nodes > 400:
            raise KeyboardInterrupt

    solution = by_network("helmholtz", tol=1e-18, progress=stop)
    assert solution.status == "stalled"
    assert "interrupted" in solution.diagnostics.message
    assert np.isfinite(solution([[0.5, 0.5]])).all()
    with pytest.raises(KeyboardInterrupt):
        by_network("helmholtz", progress=lambda _: (_ for _ in ()).throw(KeyboardInterrupt))


def test_budget_memory_and_rounding_are_named_as_limits(monkeypatch):
    solution = by_network("helmholtz", tol=1e-18, budget=0.01)
    assert solution.status == "stalled"
    assert "0.01 nominal seconds" in solution.diagnostics.message
    rounded = by_network("advection", tol=1e-18)
    assert "Round-off" in rounded.diagnostics.message
    assert rounded.true_error() < 1e-13
    monkeypatch.setattr("pibls.refinement.stopping.available_memory", lambda: 10)
    assert "memory limits" in by_network("helmholtz", tol=1e-18).diagnostics.message
    with pytest.raises(InputError, match="'budget'"):
        pb.solve(pb.problems.poisson(), budget=0)


def test_stages_and_settings_are_recorded_and_printed():
    solution = by_network("helmholtz", tol=1e-9)
    widths = [stage.nodes for stage in solution.diagnostics.stages]
    assert widths == sorted(widths)
    assert solution.diagnostics.settings["activation"] == "sin"
    printed = str(solution.diagnostics)
    assert f"{widths[-1]} nodes: held-out residual" in printed
    assert "within the tolerance" in printed


def test_scan_finds_an_anisotropic_scale_and_stops_when_told():
    asked = []

    def score(scale):
        asked.append(scale)
        return abs(np.log(scale[0] / 20)) + abs(np.log(scale[1] / 0.6))

    scale = choose_scale(score, 2, 0.0)
    assert scale[0] == pytest.approx(20, rel=0.5)
    assert scale[1] == pytest.approx(0.6, rel=0.5)
    assert score(scale) == min(map(score, list(asked)))
    for options in ({"enough": 100.0}, {"enough": 0.0, "accept": lambda _: True}):
        asked.clear()
        choose_scale(score, 2, **options)
        assert len(set(asked)) <= 8
    over_time = choose_scale(lambda s: abs(np.log(s[4] / 16)) + s[0], 5, 0.0)
    assert over_time[4] == pytest.approx(16, rel=0.5)


def test_the_scale_of_many_axes_climbs_to_the_best():
    asked = []
    found = climb(lambda s: asked.append(s) or abs(np.log(s[0] / 2.0)), 8, 0.0)
    assert all(len(set(scale)) == 1 for scale in asked)
    assert abs(np.log(found[0] / 2.0)) == min(abs(np.log(s[0] / 2.0)) for s in asked) < np.log(np.sqrt(2.0)) + 1e-12


def test_networks_say_nothing_of_contradictions_in_many_coordinates():
    axes = pb.coordinates("a b c d e f")
    u, box = pb.field("u", *axes), pb.Box(*((axis, 0, 1) for axis in axes))
    problem = pb.Problem(sp.Eq(-pb.laplacian(u), 1), box, [pb.Dirichlet(u, 0)])
    assert not contradiction_of(Fitting(problem, 0))


def test_conditions_that_clash_in_many_coordinates_are_told():
    axes = pb.coordinates("a b c d")
    u, box = pb.field("u", *axes), pb.Box(*((axis, 0, 1) for axis in axes))
    left = box.boundary.where(lambda X: X[:, 0] == 0)
    problem = pb.Problem(pb.laplacian(u), box, [pb.Dirichlet(u, 0), pb.Dirichlet(u, 1, on=left)])
    solution = pb.solve(problem, tol=1e-2, budget=0.1, progress=False)
    assert solution.status == "ill-posed"
    assert "one says 0 and the other 1" in solution.diagnostics.message


def test_refined_scale_follows_a_valley_as_far_as_it_goes():
    def score(scale):
        return float(np.exp(np.log(scale[0] / 30) ** 2))

    assert refine_scale(score, (3.0, 1.0)) == pytest.approx((30.0, 10.0), rel=0.06)
    assert refine_scale(score, (30.0, 1.5)) == pytest.approx((30.0, 1.5), rel=1e-6)


def test_a_richer_network_that_is_worse_shares_the_distance_but_never_takes_it_all():
    assert estimated_error(1e-6, 1e-9, 1.0) == pytest.approx(1.0)
    assert estimated_error(1e-6, 1e-2, 1.0) == pytest.approx(0.1)


def test_wider_networks_keep_the_nodes_of_narrow_ones():
    fitting = Fitting(pb.problems.poisson_nd(5), 0)
    narrow, wide = (fitting.network([(50, (1.0,) * 5), (30, (2.0,) * 5)][:count]) for count in (1, 2))
    X = fitting.compare_points[:7]
    zero = (0,) * 5
    np.testing.assert_array_equal(wide.evaluate(X, [zero])[zero][:, :50], narrow.evaluate(X, [zero])[zero])
    assert fitting.operations(200) > 4 * fitting.operations(100)
