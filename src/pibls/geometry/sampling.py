"""Point designs on the unit cube, and their transport to shapes by maps and rejection."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray, check_choice, check_integer, check_seed
from pibls.errors import GeometryError, ResourceError
from pibls.runtime import require_memory

Embedding = Callable[[FloatArray], tuple[FloatArray, BoolArray | None]]

METHODS = ("sobol", "halton", "lhs", "kronecker", "uniform", "grid")

_LARGEST_ARRAY = 2**31
_LARGEST_BATCH = 2**20
_SMALL = 2**16  # so few points are not worth a look at the memory
_PATIENCE = 2**22


def check_count(n: object, dimension: int, owner: str) -> int:
    """Return ``n`` as a positive int, refusing counts whose points would not fit into memory.

    >>> check_count(100, 2, "sample")
    100
    """
    count = check_integer("n", n, owner, minimum=1)
    if count * max(dimension, 1) > _LARGEST_ARRAY:
        raise ResourceError(
            f"The 'n' parameter of {owner} asks for {count} points in {dimension} dimensions, more than "
            f"{_LARGEST_ARRAY} numbers. Ask for at most {_LARGEST_ARRAY // max(dimension, 1)} points at a time."
        )
    if count > _SMALL:
        # The design, its image, the kept rows and the result.
        require_memory(4 * 8 * count * max(dimension, 1), f"{owner} of {count} points", "Ask for fewer points.")
    return count


def check_draw(n: object, dimension: int, method: object, seed: object, owner: str) -> tuple[int, np.random.Generator]:
    """Return a number of points to be drawn and a generator, or refuse them or the method."""
    count = check_count(n, dimension, owner)
    check_choice("method", method, owner, METHODS)
    return count, check_seed(seed, owner)


def unit_cube(
    n: int, d: int, method: str = "sobol", rng: int | np.random.Generator = 0, owner: str = "unit_cube"
) -> FloatArray:
    """Return ``n`` points of the unit cube in ``d`` dimensions.

    Methods are a scrambled Sobol' or Halton sequence, a Latin hypercube, a randomly shifted additive recurrence (as
    even as the others, and at hand without loading SciPy's statistics), pseudo-random points, or the cell midpoints of
    a lattice (so no point of a grid lies on the boundary of the cube), thinned evenly to exactly ``n``.

    >>> unit_cube(4, 1, "grid").ravel()
    array([0.125, 0.375, 0.625, 0.875])
    """
    count, generator = check_draw(n, d, method, rng, owner)
    return _thinned_lattice(count, d) if method == "grid" else _stream(d, method, generator)(count)


def kronecker(n: int, d: int, start: int = 0, shift: FloatArray | float = 0.5) -> FloatArray:
    """Return ``n`` points of the additive recurrence with the generalised golden ratio, from position ``start`` on.

    Quasi-random, without SciPy; unshifted, it is what the geometry uses for its own estimates.

    >>> kronecker(2, 1).round(3).ravel()
    array([0.118, 0.736])
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (d + 1))
    steps = ratio ** -np.arange(1.0, d + 1)
    return np.asarray((shift + np.arange(start + 1, start + n + 1)[:, None] * steps) % 1.0)


def thin(available: int, n: int) -> IntArray:
    """Return ``n`` indices spread evenly over ``range(available)``.

    >>> thin(9, 3)
    array([1, 4, 7])
    """
    return np.asarray((2 * np.arange(n, dtype=np.int64) + 1) * available // (2 * n), dtype=np.int64)


def picked(sizes: FloatArray, position: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return which of several things, laid end to end, positions in [0, 1] are in, and how far along it.

    >>> picked(np.array([1.0, 3.0]), np.array([0.1, 0.25, 1.0]))
    (array([0, 1, 1]), array([0.4, 0. , 1. ]))
    """
    ends = np.cumsum(sizes)
    place = np.clip(position, 0.0, 1.0) * ends[-1]
    item = np.minimum(np.searchsorted(ends, place, side="right"), len(ends) - 1)
    return item, np.clip((place - (ends - sizes)[item]) / sizes[item], 0.0, 1.0)


def on_simplices(corners: FloatArray, local: FloatArray) -> FloatArray:
    """Return points of edges, shares of the way along; of triangles, shares of the way from a corner and directions."""
    a, s, t = corners[..., 0, :], local[..., :1], local[..., 1:]
    across = corners[..., 1, :] - a
    if corners.shape[-2] == 3:
        across = (1 - t) * across + t * (corners[..., 2, :] - a)
    return np.asarray(a + s * across)


def picked_simplices(sizes: FloatArray, U: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return which edges or triangles parameters choose, the first by their sizes, and where in each they are."""
    item, share = picked(sizes, U[:, 0])
    return item, np.column_stack([share if U.shape[1] == 1 else np.sqrt(share), U[:, 1:]])


def apportion(n: int, measures: FloatArray) -> IntArray:
    """Share ``n`` points in proportion to ``measures``, one at least to each as far as ``n`` goes.

    >>> apportion(8, np.array([3.0, 1.0]))
    array([6, 2])
    >>> apportion(5, np.array([1.0, 1e-9]))
    array([4, 1])
    """
    pieces = len(measures)
    counts = np.zeros(pieces, dtype=np.int64)
    if n < pieces:
        counts[np.argsort(-measures, kind="stable")[:n]] = 1
        return counts
    quota = n * measures / measures.sum()
    counts += np.maximum(np.floor(quota).astype(np.int64), 1)
    while (excess := int(counts.sum()) - n) > 0:
        spare = np.where(counts > 1, counts - quota, -np.inf)
        worst = np.argsort(-spare, kind="stable")[: min(excess, int((counts > 1).sum()))]
        counts[worst] -= 1
    counts[np.argsort(counts - quota, kind="stable")[: n - int(counts.sum())]] += 1
    return counts


def fill(embed: Embedding, parameters: int, n: int, method: str, rng: np.random.Generator, owner: str) -> FloatArray:
    """Return exactly ``n`` rows that ``embed`` keeps of a design on the unit cube.

    ``embed`` maps an (N, parameters) design to N rows and a mask of those to keep (None: all of them). Sequences
    are drawn on until enough rows are kept; a lattice is refined until it has enough and then thinned evenly.
    """
    if parameters == 0:
        return embed(np.empty((n, 0)))[0]
    if method == "grid":
        return _fill_from_lattice(embed, parameters, n, owner)
    draw = _stream(parameters, method, rng)
    kept: list[FloatArray] = []
    drawn = found = 0
    while found < n:
        rate = (found + 1.0) / (drawn + 1.0) if drawn else 1.0
        batch = min(math.ceil((n - found) / rate), max(n, _LARGEST_BATCH))
        rows, keep = embed(draw(batch))
        rows = rows if keep is None else rows[keep]
        kept.append(rows)
        found += len(rows)
        drawn += batch
        if found * 1e5 < drawn and drawn >= _PATIENCE:
            raise _too_thin(owner, found, drawn)
    return np.concatenate(kept)[:n]


def _stream(d: int, method: str, rng: np.random.Generator) -> Callable[[int], FloatArray]:
    """Return a function that draws the next points of a sequence."""
    if method == "uniform" or d == 0:
        return lambda n: rng.random((n, d))
    if method == "kronecker":
        return _recurrence(d, rng.random(d))
    from scipy.stats import qmc  # half a second to import, so only when it is used

    if method == "lhs":
        return lambda n: np.asarray(qmc.LatinHypercube(d, seed=rng).random(n))
    if method == "halton":
        halton = qmc.Halton(d, seed=rng)
        return lambda n: np.asarray(halton.random(n))
    sobol = qmc.Sobol(d, seed=rng)

    def draw(n: int) -> FloatArray:
        if sobol.num_generated:
            return np.asarray(sobol.random(n))
        # SciPy warns about a first draw that is not a power of two: draw the full block, then cut.
        return np.asarray(sobol.random_base2((n - 1).bit_length())[:n])

    return draw


def _recurrence(d: int, shift: FloatArray) -> Callable[[int], FloatArray]:
    drawn = 0

    def draw(n: int) -> FloatArray:
        nonlocal drawn
        drawn += n
        return kronecker(n, d, drawn - n, shift)

    return draw


def _lattice(shape: list[int]) -> FloatArray:
    axes = [(np.arange(m) + 0.5) / m for m in shape]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def _thinned_lattice(n: int, d: int) -> FloatArray:
    if d == 0:
        return np.empty((n, 0))
    shape: list[int] = []
    for axis in range(d):
        rest = -(-n // math.prod(shape))
        side = round(rest ** (1 / (d - axis)))
        shape.append(side if side ** (d - axis) >= rest else side + 1)
    lattice = _lattice(shape)
    return lattice[thin(len(lattice), n)]


def _fill_from_lattice(embed: Embedding, parameters: int, n: int, owner: str) -> FloatArray:
    rows, keep = embed(_thinned_lattice(n, parameters))
    if keep is None or keep.all():
        return rows
    wanted = float(n)
    found = int(keep.sum())
    while found < n:
        wanted *= max(1.1, 1.02 * n / max(found, n / 8))
        side = math.ceil(wanted ** (1 / parameters))
        if side**parameters > max(_PATIENCE, 64 * n):
            raise _too_thin(owner, found, int(wanted))
        rows, keep = embed(_lattice([side] * parameters))
        rows = rows if keep is None else rows[keep]
        found = len(rows)
    return rows[thin(found, n)]


def _too_thin(owner: str, found: int, drawn: int) -> GeometryError:
    return GeometryError(
        f"{owner} found {found} points among {drawn} candidates: the set is empty or too thin to be sampled by "
        "rejection. Check its description, or give the points yourself as a PointCloud."
    )
