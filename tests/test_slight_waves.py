"""A slight wave that is too short for cells or features lasts, and is part of the error until it is found."""

from typing import cast

import pytest
import sympy as sp

import pibls as pb
from internals import lasting_miss

x, t = pb.coordinates("x t")
u = pb.field("u", x, t)
LINE = pb.Interval((x, 0, 1))


def turning(waves: int, share: float, end: float) -> pb.Problem:
    """Return a wave that goes round one way, and a slight and short one that goes round the other."""
    exact = sp.cos(2 * sp.pi * (x - t)) + share * sp.sin(2 * waves * sp.pi * (x + t))
    starts = [pb.Initial(u, exact.subs(t, 0)), pb.Initial(u.diff(t), exact.diff(t).subs(t, 0))]
    law = sp.Eq(u.diff(t, 2), u.diff(x, 2))
    return pb.Problem(law, LINE * pb.TimeInterval(t, 0, end), [pb.Periodic(u, x), *starts], exact=exact)


@pytest.mark.parametrize(("waves", "share"), [(33, 0.04), (27, 0.03), (21, 0.02)])
def test_what_points_on_a_lattice_disguise_is_found_in_time(waves: int, share: float) -> None:
    solution = pb.solve(turning(waves, share, 0.5), tol=1e-2, time="lines", progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-2


def test_cells_that_miss_a_slight_wave_have_not_converged() -> None:
    exact = sp.cos(sp.pi * t) * sp.sin(sp.pi * x) + 0.02 * sp.sin(52 * sp.pi * x) * sp.cos(52 * sp.pi * t)
    starts = [pb.Initial(u, exact.subs(t, 0)), pb.Initial(u.diff(t), 0)]
    law = sp.Eq(u.diff(t, 2), u.diff(x, 2))
    problem = pb.Problem(law, LINE * pb.TimeInterval(t, 0, 0.5), [pb.Dirichlet(u, 0), *starts], exact=exact)
    solution = pb.solve(problem, tol=1e-2, budget=0.1, time="space-time", progress=False)
    assert cast(float, solution.error_estimate) > solution.true_error() / 2 > 5e-3
    assert solution.status == "stalled"


def test_a_miss_is_relative_to_the_field_and_lasts_in_waves_alone() -> None:
    wave, ramp = turning(3, 0.1, 1.0), sp.sin(2 * sp.pi * x)
    off = pb.solve(turning(3, 0.0, 1.0), tol=1e-6, progress=False)
    assert lasting_miss(wave, off.evaluate) == pytest.approx(0.1, rel=0.02)
    heat = pb.Problem(sp.Eq(u.diff(t), u.diff(x, 2)), wave.domain, [pb.Periodic(u, x), pb.Initial(u, ramp)])
    assert lasting_miss(heat, off.evaluate) == 0.0


def test_more_cells_that_leave_all_of_the_residual_vouch_for_nothing() -> None:
    """Near the axis of a wave, a slight logarithm is met in a layer: two trees that miss it agree."""
    w, ray = pb.field("w", x), pb.Interval((x, 0.1, 40))
    exact = sp.besselj(0, x) + sp.bessely(0, x) / 100
    law = sp.Eq(x * w.diff(x, 2) + w.diff(x) + x * w, 0)
    solution = pb.solve(pb.Problem(law, ray, [pb.Dirichlet(w, exact)], exact=exact), tol=1e-3, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-3


def test_the_tail_of_a_spike_in_the_next_cell_is_added_up() -> None:
    """Halves of a wide cell see more of the tail than the cell does: that is no infinite integral."""
    w, spike = pb.field("w", x), sp.exp(-(((x - 0.61803) * 500) ** 2)) / 20
    exact = x * (1 - x) + spike
    law = sp.Eq(w - w.diff(x, 2), (exact - exact.diff(x, 2)).doit())
    solution = pb.solve(pb.Problem(law, LINE, [pb.Dirichlet(w, exact)], exact=exact), tol=1e-4, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-4
