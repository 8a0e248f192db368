"""Trees on a device of torch give the answers that NumPy gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Grams
from pibls.runtime import device_for

pytest.importorskip("torch")

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))


def nonlinear():
    exact = sp.sin(x) * sp.exp(y)
    left = -pb.laplacian(u) + u**3
    return pb.Problem(sp.Eq(left, left.subs(u, exact).doit()), SQUARE, [pb.Dirichlet(u, exact)])


def without_level():
    return pb.Problem(sp.Eq(-pb.laplacian(u), sp.cos(3 * x)), SQUARE, [pb.Neumann(u, 0)])


@pytest.mark.parametrize(
    "problem",
    [pb.problems.helmholtz, pb.problems.annulus, pb.problems.l_shape_unit_load, nonlinear],
    ids=lambda own: own.__name__,
)
def test_a_device_gives_the_same_status_estimate_and_solution(problem):
    here, there = (pb.solve(problem(), tol=1e-3, device=device) for device in (None, "cpu"))
    assert (here.status, here.diagnostics.nodes) == (there.status, there.diagnostics.nodes)
    assert there.error_estimate == pytest.approx(here.error_estimate, rel=0.1)
    assert there.diagnostics.settings["device"] == "cpu"
    X = here.problem.domain.sample(50, seed=3)
    np.testing.assert_allclose(there(X), here(X), atol=0.1 * here.error_estimate * np.abs(here(X)).max())


def test_a_device_finds_what_determines_nothing():
    here, there = (pb.solve(without_level(), tol=1e-3, device=device) for device in (None, "cpu"))
    assert here.status == there.status == "ill-posed"
    assert here.diagnostics.message == there.diagnostics.message


def test_cells_carry_their_device_and_a_wrong_one_is_refused():
    told = pb.solve(pb.problems.helmholtz(), tol=1e-3, method=pb.Cells(device="cpu"))
    assert told.diagnostics.settings["device"] == "cpu"
    with pytest.raises(pb.PiblsError, match="'device' parameter must be a device that torch has here"):
        pb.solve(pb.problems.helmholtz(), method=pb.Cells(device="warp"))


def test_auto_is_numpy_where_torch_has_no_gpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "device" not in pb.solve(pb.problems.helmholtz(), tol=1e-3, device="auto").diagnostics.settings


def test_a_tree_too_large_for_a_device_is_solved_on_the_processor(monkeypatch):
    wanted = pb.solve(pb.problems.helmholtz(), tol=1e-3)
    here = type(Grams()).joined

    def full(self, *fronts):
        if self.device is not None:
            raise RuntimeError("CUDA out of memory")
        return here(self, *fronts)

    monkeypatch.setattr(Grams, "joined", full)
    found = pb.solve(pb.problems.helmholtz(), tol=1e-3, device="cpu")
    assert found.error_estimate == pytest.approx(wanted.error_estimate, rel=1e-9)


def test_a_solution_of_another_machine_grows_without_its_device():
    made = pb.solve(pb.problems.helmholtz(), tol=1e-3, device="cpu")
    record = replace(made.diagnostics, settings={**made.diagnostics.settings, "device": "cuda"})
    grown = replace(made, diagnostics=record).grow(nodes=100)
    assert grown.diagnostics.nodes > made.diagnostics.nodes


def test_auto_takes_a_gpu_only_for_much_work(monkeypatch):
    monkeypatch.setattr("pibls.tuning.automatic.found_device", lambda: "cpu")
    placed = []

    def chosen(device, operations):
        placed.append(device_for(device, operations))
        return placed[-1]

    monkeypatch.setattr("pibls.cells.solve.device_for", chosen)
    plain, small = (pb.solve(pb.problems.annulus(), tol=1e-4, device=device) for device in (None, "auto"))
    assert set(placed) == {None}
    assert small.diagnostics.settings["device"] == "auto"
    assert small.error_estimate == plain.error_estimate
    monkeypatch.setattr("pibls.runtime.RATE", 1e6)
    large = pb.solve(pb.problems.annulus(), tol=1e-4, device="auto")
    assert placed[-1] == "cpu"
    assert large.status == plain.status
    assert large.error_estimate == pytest.approx(plain.error_estimate, rel=0.1)


def test_auto_closes_no_way(monkeypatch):
    monkeypatch.setattr("pibls.tuning.automatic.found_device", lambda: "cpu")
    t = pb.coordinates("t")
    v = pb.field("v", x, t)
    step = sp.Piecewise((1, x < sp.Rational(1, 3)), (0, True))
    carried = pb.Problem(
        sp.Eq(v.diff(t) + v.diff(x), 0),
        pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 0.5),
        [pb.Initial(v, step), pb.Dirichlet(v, 1, on=pb.Interval((x, 0, 1)).left)],
    )
    for problem in (pb.problems.heat_robin(), carried):
        plain, auto = (pb.solve(problem, tol=1e-3, device=device) for device in (None, "auto"))
        assert (auto.status, auto.diagnostics.method) == (plain.status, plain.diagnostics.method)
        assert auto.diagnostics.message == plain.diagnostics.message
