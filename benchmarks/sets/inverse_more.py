"""More unknowns from measurements, written from the documentation alone: a list to work with, and one kept aside.

Nothing may be chosen by ``inverse_more_aside``. Data come from closed forms and series.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.sets.inverse_open import LINE, SQUARE, N, R, T, during, grid, h, plucked, positive, t, v, x, y
from benchmarks.sets.meters import Meter, collected
from pibls.checks import FloatArray

case, inverse_more = collected()
aside, inverse_more_aside = collected()


def rest() -> list[Any]:
    """Return the conditions of a string that is held at its ends and at rest when it starts."""
    return [pb.Dirichlet(h, 0), pb.Initial(h.diff(t), 0)]


def two_hands(X: FloatArray) -> FloatArray:
    """Return the shape of a string that is pulled up at two places."""
    return np.asarray((plucked(0.25)(X) + plucked(0.7)(X)) / 2)


# To work with: determined ---------------------------------------------------------------------------------------------


@case()
def tumour_that_slows(meter: Meter) -> pb.Problem:
    """Find rate and end of a growth by Gompertz' law, seen to a third of it."""
    rate, end = positive("r"), positive("K", 5)
    at = np.linspace(0.2, 2.4, 16)
    data = meter(N, at, 30 * np.exp(-np.log(30) * np.exp(-0.5 * at)), 0.05)
    law = sp.Eq(N.diff(t), rate * N * sp.log(end / N))
    return pb.Problem(law, during(R(12, 5)), [pb.Initial(N, 1), data], truth={rate: 0.5, end: 30})


@case(function=plucked(0.5))
def string_from_the_middle(meter: Meter) -> pb.Problem:
    """Find the shape of a string that was pulled up in the middle, from six sensors over a whole period."""
    first = pb.field("first", x, prior=pb.Smooth())
    where = grid(np.linspace(0.12, 0.88, 6), np.linspace(0.1, 2, 24))
    shape = plucked(0.5)
    seen = (shape(where[:, 0] - where[:, 1]) + shape(where[:, 0] + where[:, 1])) / 2
    conditions = [*rest(), pb.Initial(h, first), meter(h, where, seen, 0.01)]
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), LINE * during(2), conditions)


@case()
def decay_in_a_channel(meter: Meter) -> pb.Problem:
    """Find dispersion, decay and unevenness of a substance that flows through a channel."""
    d, k, uneven = positive("D", 0.5), positive("k", 0.3), pb.unknown("uneven", start=0)
    channel = pb.Rectangle((x, 0, 2), (y, 0, 1))
    where = grid(np.linspace(0.2, 1.8, 6), np.linspace(0.1, 0.9, 5))
    seen = np.zeros(len(where))
    for n, share in ((0, 1.0), (1, 0.6)):
        root = np.sqrt(1 + 4 * 0.15 * (0.8 + 0.15 * (n * np.pi) ** 2))
        falls, rises = (1 - root) / 0.3, (1 + root) / 0.3
        a, b = np.linalg.solve([[1, np.exp(-2 * rises)], [falls * np.exp(2 * falls), rises]], [share, 0.0])
        along = a * np.exp(falls * where[:, 0]) + b * np.exp(rises * (where[:, 0] - 2))
        seen += along * np.cos(n * np.pi * where[:, 1])
    conditions = [
        pb.Dirichlet(v, 1 + uneven * sp.cos(sp.pi * y), on=channel.left),
        pb.Neumann(v, 0, on=channel.right | channel.top | channel.bottom),
        meter(v, where, seen, 0.005),
    ]
    law = sp.Eq(v.diff(x), d * pb.laplacian(v) - k * v)
    return pb.Problem(law, channel, conditions, truth={d: 0.15, k: 0.8, uneven: 0.6})


# To work with: not determined -----------------------------------------------------------------------------------------


@case("ill-posed", told="k")
def plate_in_air(meter: Meter) -> pb.Problem:
    """Ask for conduction, loss to the air and heating of a disk: only two ratios matter."""
    k, loss, heat = positive("k"), positive("h", 2), positive("q", 3)
    disk = pb.Disk((x, y), (0, 0), 1)
    where = np.array([[r * np.cos(s), r * np.sin(s)] for r in (0.2, 0.5, 0.9) for s in (0.3, 1.5, 3.0, 5.0)])
    seen = 1.5 * (1 / (2 * 0.8) + (1 - np.sum(where**2, axis=1)) / 4)
    around = pb.Condition(sp.Eq(k * pb.normal_derivative(v), -loss * v), on=disk.boundary)
    return pb.Problem(sp.Eq(-k * pb.laplacian(v), heat), disk, [around, meter(v, where, seen, 0.01)])


@case("ill-posed", told="rho")
def weight_tension_and_drag(meter: Meter) -> pb.Problem:
    """Ask for weight, tension and drag of a string: only two ratios matter."""
    rho, tension, drag = positive("rho"), positive("tension", 2), positive("drag", 0.5)
    at = np.linspace(0.05, 2, 30)
    beat = np.sqrt((1.2 * np.pi) ** 2 - 0.16)
    seen = np.exp(-0.4 * at) * (np.cos(beat * at) + 0.4 / beat * np.sin(beat * at)) * np.sin(0.4 * np.pi)
    law = sp.Eq(rho * h.diff(t, 2) + drag * h.diff(t), tension * h.diff(x, 2))
    data = meter(h, {x: 0.4, t: at}, seen, 0.01)
    return pb.Problem(law, LINE * during(2), [*rest(), pb.Initial(h, sp.sin(sp.pi * x)), data])


@case("ill-posed", told="loss")
def odd_source_seen_from_its_axis(meter: Meter) -> pb.Problem:
    """Ask for the loss of a plate with an odd source, measured along the line on which nothing happens."""
    loss = positive("loss")
    source = sp.sin(2 * sp.pi * x) * sp.sin(sp.pi * y) * (1 + y)
    data = meter(v, grid([0.5], np.linspace(0.1, 0.9, 9)), np.zeros(9), 0.001)
    return pb.Problem(sp.Eq(-pb.laplacian(v) + loss * v, source), SQUARE, [pb.Dirichlet(v, 0), data])


@case("ill-posed", told="s")
def source_or_its_image(meter: Meter) -> pb.Problem:
    """Ask where a source lies, measured along the axis of a plate: its mirror image reads the same."""
    s = pb.unknown("s", start=0.3)
    where = grid([0.5], np.linspace(0.1, 0.9, 9))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    nodes, weights = (nodes + 1) / 2, weights / 2
    mode = [np.sin(n * np.pi * nodes) for n in range(1, 41)]
    across = [2 * weights @ (one * np.exp(-50 * (nodes - 0.35) ** 2)) for one in mode]
    along = [2 * weights @ (one * np.exp(-50 * (nodes - 0.5) ** 2)) for one in mode]
    seen = np.zeros(len(where))
    for m, one in enumerate(across, 1):
        for n, other in enumerate(along, 1):
            wave = np.sin(m * np.pi * where[:, 0]) * np.sin(n * np.pi * where[:, 1])
            seen += 20 * one * other * wave / (np.pi**2 * (m * m + n * n))
    law = sp.Eq(-pb.laplacian(v), 20 * sp.exp(-50 * ((x - s) ** 2 + (y - R(1, 2)) ** 2)))
    return pb.Problem(law, SQUARE, [pb.Dirichlet(v, 0), meter(v, where, seen, 0.001)])


@case("ill-posed", told="ka")
def drug_in_an_unknown_volume(meter: Meter) -> pb.Problem:
    """Measure the concentration of a drug: uptake and loss can be exchanged with another volume."""
    ka, kb, volume = pb.unknown("ka", start=2), pb.unknown("kb", start=0.5), pb.unknown("V", start=1)
    at = np.linspace(0.25, 8, 24)
    seen = 6 / 3 * 0.9 / (0.9 - 0.1) * (np.exp(-0.1 * at) - np.exp(-0.9 * at))
    laws = [sp.Eq(T.diff(t), -ka * T), sp.Eq(N.diff(t), ka * T / volume - kb * N)]
    return pb.Problem(laws, during(8), [pb.Initial(T, 6), pb.Initial(N, 0), meter(N, at, seen, 0.01)])


# To work with: contradicted -------------------------------------------------------------------------------------------


@case("stalled", told="fit")
def plate_with_a_grain(meter: Meter) -> pb.Problem:
    """Fit one conductivity to a plate that conducts twice as well along its grain."""
    k = positive("k")
    where = grid(np.linspace(0.1, 0.9, 6), np.linspace(0.2, 0.8, 4))
    px, py = np.pi * where.T
    seen = (np.sin(px) / 3 + np.sin(2 * px) / 6) * np.sin(py)
    source = sp.pi**2 * sp.sin(sp.pi * y) * (sp.sin(sp.pi * x) + sp.sin(2 * sp.pi * x))
    data = meter(v, where, seen, 0.005)
    return pb.Problem(sp.Eq(-k * pb.laplacian(v), source), SQUARE, [pb.Dirichlet(v, 0), data])


@case("stalled", told="fit")
def two_pools_as_one(meter: Meter) -> pb.Problem:
    """Fit one decay, from an unknown start, to the sum of two."""
    rate, first = positive("k"), positive("first", 2)
    at = np.linspace(0, 5, 26)
    data = meter(T, at, 0.6 * np.exp(-0.3 * at) + 0.4 * np.exp(-2 * at), 0.01)
    return pb.Problem(sp.Eq(T.diff(t), -rate * T), during(5), [pb.Initial(T, first), data])


# Aside: determined ----------------------------------------------------------------------------------------------------


@aside()
def growth_from_a_few(meter: Meter) -> pb.Problem:
    """Find rate, capacity and first amount of a growth seen to a third of its end, started from a small capacity."""
    rate, capacity, first = positive("r", 3), positive("K", 1), positive("first", 1)
    at = np.linspace(0.1, 2.2, 22)
    data = meter(N, at, 8 / (1 + 39 * np.exp(-1.3 * at)), 0.01)
    law = sp.Eq(N.diff(t), rate * N * (1 - N / capacity))
    truth = {rate: 1.3, capacity: 8, first: 0.2}
    return pb.Problem(law, during(R(11, 5)), [pb.Initial(N, first), data], truth=truth)


@aside(function=two_hands)
def string_in_two_hands(meter: Meter) -> pb.Problem:
    """Find the shape of a string that was pulled up at two places."""
    first = pb.field("first", x, prior=pb.Smooth())
    where = grid(np.linspace(0.1, 0.9, 9), np.linspace(0.02, 0.5, 20))
    seen = (two_hands(where[:, 0] - 2 * where[:, 1]) + two_hands(where[:, 0] + 2 * where[:, 1])) / 2
    conditions = [*rest(), pb.Initial(h, first), meter(h, where, seen, 0.005)]
    return pb.Problem(sp.Eq(h.diff(t, 2), 4 * h.diff(x, 2)), LINE * during(R(1, 2)), conditions)


@aside()
def disk_in_air(meter: Meter) -> pb.Problem:
    """Find conduction and loss of a disk that is heated evenly."""
    k, loss = positive("k"), positive("h")
    disk = pb.Disk((x, y), (0, 0), 1)
    where = np.array([[r * np.cos(s), r * np.sin(s)] for r in (0.2, 0.5, 0.9) for s in (0.3, 1.5, 3.0, 5.0)])
    seen = 1 / (2 * 2.0) + (1 - np.sum(where**2, axis=1)) / (4 * 0.5)
    around = pb.Condition(sp.Eq(k * pb.normal_derivative(v), -loss * v), on=disk.boundary)
    conditions = [around, meter(v, where, seen, 0.005)]
    return pb.Problem(sp.Eq(-k * pb.laplacian(v), 1), disk, conditions, truth={k: 0.5, loss: 2})


# Aside: not determined ------------------------------------------------------------------------------------------------


@aside("ill-posed", told="C")
def capacity_conduction_heating(meter: Meter) -> pb.Problem:
    """Ask for capacity, conduction and heating of a rod: only two ratios matter."""
    capacity, k, heat = positive("C"), positive("k"), positive("q")
    where = grid(np.linspace(0.2, 0.8, 4), np.linspace(0.1, 1, 6))
    seen = 2 * np.sin(np.pi * where[:, 0]) * (1 - np.exp(-0.2 * np.pi**2 * where[:, 1])) / (0.2 * np.pi**2)
    law = sp.Eq(capacity * h.diff(t), k * h.diff(x, 2) + heat * sp.sin(sp.pi * x))
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, 0), meter(h, where, seen, 0.01)]
    return pb.Problem(law, LINE * during(), conditions)


@aside("ill-posed", told="D")
def odd_pattern_seen_from_its_middle(meter: Meter) -> pb.Problem:
    """Watch an odd pattern that reacts and spreads from the place where it stays zero."""
    spread = positive("D", 0.1)
    rod = pb.Interval((x, -1, 1))
    start = sp.sin(sp.pi * x) + sp.sin(3 * sp.pi * x) / 2
    data = meter(h, {x: 0.0, t: np.linspace(0.05, 1, 15)}, np.zeros(15), 0.01)
    law = sp.Eq(h.diff(t), spread * h.diff(x, 2) - h**3)
    return pb.Problem(law, rod * during(), [pb.Dirichlet(h, 0), pb.Initial(h, start), data])


@aside("ill-posed", told="k1")
def product_of_two_decays(meter: Meter) -> pb.Problem:
    """Measure the product of two decays: only the sum of their rates matters."""
    one, other = positive("k1", 0.4), positive("k2")
    at = np.linspace(0.1, 2, 15)
    data = meter(T * N, at, 3 * np.exp(-1.5 * at), 0.02)
    laws = [sp.Eq(T.diff(t), -one * T), sp.Eq(N.diff(t), -other * N)]
    return pb.Problem(laws, during(2), [pb.Initial(T, 3), pb.Initial(N, 1), data])


# Aside: contradicted --------------------------------------------------------------------------------------------------


@aside("stalled", told="fit")
def fall_through_honey(meter: Meter) -> pb.Problem:
    """Fit a drag in proportion to the speed to one that grows with its square."""
    drag = positive("b", 0.5)
    at = np.linspace(0.2, 4, 20)
    data = meter(T, at, 10 * np.tanh(0.981 * at), 0.1)
    return pb.Problem(sp.Eq(T.diff(t), R(981, 100) - drag * T), during(4), [pb.Initial(T, 0), data])


@aside("stalled", told="fit")
def string_of_rubber(meter: Meter) -> pb.Problem:
    """Fit a string that air slows down to one in which high modes die sooner."""
    speed, drag = positive("c", 0.9), positive("b", 0.2)
    at = np.linspace(0.05, 2, 40)
    seen = np.zeros(40)
    for n, loss in ((1, 0.1), (3, 0.9)):
        beat = np.sqrt((n * np.pi) ** 2 - loss**2)
        seen += np.exp(-loss * at) * (np.cos(beat * at) + loss / beat * np.sin(beat * at)) * np.sin(0.3 * n * np.pi) / n
    law = sp.Eq(h.diff(t, 2) + 2 * drag * h.diff(t), speed**2 * h.diff(x, 2))
    start = pb.Initial(h, sp.sin(sp.pi * x) + sp.sin(3 * sp.pi * x) / 3)
    return pb.Problem(law, LINE * during(2), [*rest(), start, meter(h, {x: 0.3, t: at}, seen, 0.01)])
