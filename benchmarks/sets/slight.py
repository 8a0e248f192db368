"""Problems whose large part is easily solved, and whose slight part is easily missed; and roads, films, debts.

By someone who did not know how they are solved. Waves of a few hundredths last, though neither cells nor features that
resolve all else see them; kinks and films are no solutions, though iterations end near them.
"""

from __future__ import annotations

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import DISK, LINE, R, h, t, u, w, x
from benchmarks.sets.posing import ASKED, SEEDS, begun, held, posed

case, slight = collected(ASKED, SEEDS)


def _string(exact: sp.Expr, ends: list[pb.Condition], last: object = 1) -> pb.Problem:
    """Return a wave on a line of length one."""
    domain = LINE * pb.TimeInterval(t, 0, last)
    return posed(h.diff(t, 2) - h.diff(x, 2), {h: exact}, domain, [*ends, *begun({h: exact}, domain, 2)])


def _round(waves: int, share: sp.Expr, last: object = 1) -> pb.Problem:
    """Return a wave that goes round one way, and a slight and short one that goes round the other."""
    exact = sp.cos(2 * sp.pi * (x - t)) + share * sp.sin(2 * waves * sp.pi * (x + t))
    return _string(exact, [pb.Periodic(h, x)], last)


@case("slight waves")
def hum_against_the_tide() -> pb.Problem:
    """Let 33 short waves of 4 % go round against one long one."""
    return _round(33, R(1, 25), R(1, 2))


@case("slight waves")
def hum_that_goes_round_twice() -> pb.Problem:
    """Let 33 short waves of 3 % go round twice against one long one."""
    return _round(33, R(3, 100), 2)


@case("slight waves")
def hum_of_twenty_seven() -> pb.Problem:
    """Let 27 short waves of 3 % go round once against one long one."""
    return _round(27, R(3, 100))


@case("slight waves")
def whistle_on_a_string() -> pb.Problem:
    """Let a string held at its ends whistle at 23 times its note, by 2 % of its swing."""
    exact = sp.cos(sp.pi * t) * sp.sin(sp.pi * x) + R(1, 50) * sp.sin(23 * sp.pi * x) * sp.cos(23 * sp.pi * t)
    return _string(exact, [pb.Dirichlet(h, 0)], 2)


@case("slight waves")
def fifth_note_of_a_beam() -> pb.Problem:
    """Let the fifth note of a beam sound by a hundredth of the first."""
    domain = LINE * pb.TimeInterval(t, 0, 1)
    fifth = sp.sin(5 * sp.pi * x) * sp.cos(25 * sp.pi**2 * t) / 100
    exact = sp.sin(sp.pi * x) * sp.cos(sp.pi**2 * t) + fifth
    ends = [pb.Dirichlet(h, 0), pb.Dirichlet(h.diff(x, 2), 0)]
    return posed(h.diff(t, 2) + h.diff(x, 4), {h: exact}, domain, [*ends, *begun({h: exact}, domain, 2)])


@case("long waves")
def antenna_far_and_near() -> pb.Problem:
    """Follow a wave about an axis from near it, where a hundredth of it is infinite, over six wave lengths."""
    exact, ray = sp.besselj(0, x) + sp.bessely(0, x) / 100, pb.Interval((x, R(1, 10), 40))
    return posed(x * w.diff(x, 2) + w.diff(x) + x * w, {w: exact}, ray, held({w: exact}))


@case("degenerate")
def ink_in_a_sponge() -> pb.Problem:
    """Let ink spread that moves faster the more there is of it: its edge is sharp."""
    domain, since = pb.Interval((x, -6, 6)) * pb.TimeInterval(t, 0, 1), 1 + t
    exact = since ** -R(1, 3) * sp.Max(0, 1 - x**2 / (12 * since ** R(2, 3)))
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(sp.Eq(h.diff(t), (h**2).diff(x, 2)), domain, conditions, exact=exact)


@case("ill-posed")
def road_to_a_hill() -> pb.Problem:
    """Rise or fall with slope one, over two miles up by a third: no smooth road does."""
    line = pb.Interval((x, 0, 2))
    ends = [pb.Dirichlet(w, 0, on=line.left), pb.Dirichlet(w, R(1, 3), on=line.right)]
    return pb.Problem(sp.Eq(w.diff(x) ** 2, 1), line, ends)


@case("ill-posed")
def squares_in_debt() -> pb.Problem:
    """Let two squares add up to less than nothing."""
    return pb.Problem(sp.Eq(w.diff(x) ** 2 + w**2, -1), LINE, [pb.Dirichlet(w, 0, on=LINE.left)])


@case("ill-posed", asked=(1e-4,))
def drop_that_is_too_heavy() -> pb.Problem:
    """Load a film over a disk with three times what its edge holds by one, all derivatives written out."""
    y = DISK.coordinates[1]
    long = sp.sqrt(1 + u.diff(x) ** 2 + u.diff(y) ** 2)
    return pb.Problem(sp.Eq(sum((u.diff(s) / long).diff(s) for s in (x, y)), 3), DISK, [pb.Dirichlet(u, 0)])


@case("ill-posed")
def start_that_is_fixed_already() -> pb.Problem:
    """Give a value where x w′ + w = 1 has only one finite one, another one."""
    return pb.Problem(sp.Eq(x * w.diff(x) + w, 1), LINE, [pb.Dirichlet(w, 2, on=LINE.left)])
