"""Eigenvalues of a problem: from a first tree of cells to finer ones, until all of them are known."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pibls.budget import Budget
from pibls.cells import suits_cells
from pibls.cells.error_marking import ErrorMarking, Mark
from pibls.cells.fitters import LinearFitter, highest_degree
from pibls.cells.grading import approached
from pibls.cells.linear import start_of
from pibls.cells.outcome import Comparison, solution_of
from pibls.cells.prices import is_cheaper_richer, room
from pibls.cells.solve import TreeSolver
from pibls.cells.tree import Cell, refined
from pibls.checks import FloatArray, check_integer, check_number, counted, shorten
from pibls.errors import InputError
from pibls.markup import facts
from pibls.problem import Problem
from pibls.quadrature.roots import ROUNDING
from pibls.refinement import VISIBLE, Cost, Course, Reason, Stop, extrapolated, refine, verdict
from pibls.refinement.patience import TREES
from pibls.refinement.standards import FALLS, MOST, NEGLIGIBLE, PLAIN, POINTS
from pibls.refinement.stopping import GLANCE
from pibls.runtime import blas_threads
from pibls.solution import Solution, Stage
from pibls.spectrum.krylov import SPARE, Modes, modes_of
from pibls.spectrum.pencil import Pencil
from pibls.spectrum.posed import flaw_of, missed, one_too_many
from pibls.status import Status
from pibls.wellposed.counting import joined

_SEARCHES = 8  # shifts that are tried until no eigenvalue lies below


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues with their errors, and eigenfunctions.

    Attributes
    ----------
    values
        The eigenvalues: from the lowest up, or from the nearest on if they were asked for near a number.
    errors
        The estimated absolute error of each.
    solutions
        The eigenfunctions, of size one in the mean square over the domain. Where real fields have complex
        eigenvalues, these are real parts.
    imaginary
        The imaginary parts of eigenfunctions; None where fields are complex or an eigenvalue is real.
    status, message
        ``"converged"`` if all errors are within the tolerance, ``"ill-posed"`` if conditions are missing or one is too
        many, and why.
    """

    problem: Problem
    values: Any
    errors: FloatArray
    solutions: tuple[Solution, ...]
    imaginary: tuple[Solution | None, ...]
    status: Status
    message: str

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        lines = [f"  {value:.15g} ± {error:.1e}" for value, error in zip(self.values, self.errors, strict=True)]
        return "\n".join([f"Spectrum({self.status}, {counted(len(self), 'eigenvalue')})", *lines])

    def _repr_html_(self) -> str:
        lines = [line.strip() for line in repr(self).splitlines()[1:]]
        return facts([("status", str(self.status)), ("message", self.message), ("eigenvalues", "\n".join(lines))])


@dataclass(frozen=True, eq=False)
class _ComparedModes:
    """Eigenvalues on a tree and on a better one, and the estimated errors of the better ones."""

    modes: Modes
    better: Modes
    errors: FloatArray
    estimate: float


@dataclass(eq=False)
class EigenSearch:
    """Eigenvalues as a discretisation: compare with richer cells or a finer tree, split where modes are rough."""

    pencil: Pencil
    linear: LinearFitter
    shift: float
    near: complex
    number: int
    tol: float
    seed: int
    course: Course[_ComparedModes]
    _gaps: list[float] = field(default_factory=list)

    def modes(self, linear: LinearFitter, root: Cell, near: Modes | None = None) -> Modes:
        """Return the eigenvalues on a tree, from those on another one if these agreed with others before.

        Else the search starts from scratch, so that an eigenvalue that one of two misses shows, and is not lost again.
        """
        fit = linear.prepare(root)
        known = near if self._gaps and self._gaps[-1] <= NEGLIGIBLE else None
        return modes_of(self.pencil, linear, fit, self.shift, self.near, self.number, self.tol, self.seed, known)

    @property
    def marker(self) -> ErrorMarking:
        """The rule that chooses cells to split."""
        return ErrorMarking(self.linear.layout)

    def compare(self, here: Modes) -> _ComparedModes:
        """Compare eigenvalues with those by richer cells where eigenfunctions are smooth, else on a finer tree."""
        fit, marker, most = here.as_fields, self.marker, room(self.linear, self.course, here.fit)
        sizes = np.ones(len(fit.weights[fit.parts[0]]))
        smooth = marker.is_smooth(fit) or is_cheaper_richer(self.linear, marker, fit, sizes)
        richer = self.linear.richer() if smooth else None
        if richer is not None and richer.layout.reference.degree <= highest_degree(richer.layout.reference.dimension):
            return self.paired(here, self.modes(richer, fit.root, here))
        root = refined(fit.root, marker.splits(fit, sizes, most)[0])
        root = approached(root, self._at_corners(marker, here), len(fit.parts) + most)
        return self.paired(here, self.modes(self.linear, self.linear.layout.trimmed(root), here))

    def _at_corners(self, marker: ErrorMarking, here: Modes) -> dict[Mark, float]:
        """Return the sizes of cells at corners after which these leave no residual above the tolerance.

        It falls with the size at least, as at a crack tip. Where eigenfunctions are smooth, one cut is enough; where
        not, it is the least, so that the next tree shows what is left.
        """
        fit, least, scales = here.as_fields, NEGLIGIBLE * self.tol, self._scales(here)
        left, sizes, rough = dict[Mark, float](), dict[Mark, float](), set[Mark]()
        for part, smooth in zip(fit.parts, marker.decay(fit).smooth, strict=True):
            # A cell with several corners does not show which one leaves much.
            alone = len(part.cell.corners) == 1
            own = float((here.residuals[part] / scales).max()) if alone else 0.0
            for corner in part.cell.corners:
                sizes[corner] = min(sizes.get(corner, math.inf), part.cell.size_at_corners)
                left[corner] = math.hypot(left.get(corner, 0.0), own)
            rough |= set() if smooth else part.cell.corners
        shares = {corner: least / max(own, least) for corner, own in left.items()}
        return {
            corner: size * (min if corner in rough else max)(shares[corner], MOST) for corner, size in sizes.items()
        }

    def _scales(self, modes: Modes) -> FloatArray:
        """Return the sizes of eigenvalues, or their distances from the shift where these are larger."""
        return np.asarray(np.maximum(np.abs(modes.values), np.abs(modes.values - self.shift)))

    def paired(self, here: Modes, better: Modes) -> _ComparedModes:
        """Return eigenvalues beside better ones, with the errors of these."""
        scales, gaps = self._scales(better), _matched(here.values, better.values)
        gap = float((gaps / scales).max(initial=0.0))
        fall = gap / self._gaps[-1] if self._gaps and self._gaps[-1] > 0 else 0.0
        self._gaps.append(gap)
        # The better ones have errors, too, which fall as they did before.
        beyond = max(1.0, extrapolated(1.0, fall, FALLS) - 1.0)
        # The residual of an eigenfunction is an error of its eigenvalue, if eigenfunctions are at right angles.
        floors = better.missed * np.abs(better.values - self.shift), better.left, ROUNDING * np.abs(better.values)
        errors = np.maximum.reduce([gaps * beyond, *floors])
        return _ComparedModes(here, better, errors, float((errors / scales).max(initial=0.0)))

    def stage(self, found: _ComparedModes) -> Stage:
        """Return the record of a comparison."""
        fit = found.better.fit
        size = (fit.unknowns, 0, len(fit.parts))
        return Stage(self.course.budget.elapsed, *size, residual=found.better.residual, estimate=found.estimate)

    def is_met(self, found: _ComparedModes) -> bool:
        """Tell whether all eigenvalues are within the tolerance, and eigenfunctions fulfil their equations."""
        return found.estimate <= self.tol

    def limit(self, found: _ComparedModes) -> Stop | None:
        """Return that rounding is all that is left, where finer trees are worse twice in a row."""
        del found
        last = [stage.estimate or 0.0 for stage in self.course.stages[-3:]]
        return Stop(Reason.ROUNDING) if len(last) == 3 and last[0] < last[1] < last[2] < PLAIN else None

    def cost(self, found: _ComparedModes) -> Cost:
        """Return the cost of the next tree."""
        cells = len(found.better.fit.parts)
        return Cost("a finer tree of cells", self.linear.work(cells, cells), 2.0 * self.linear.memory)

    def finer(self, found: _ComparedModes) -> Modes:
        """Go on from the better eigenvalues, with the cells that they have."""
        if found.better.layout is not found.modes.layout:
            self.linear = self.linear.of_degree(found.better.layout.reference.degree)
        return found.better


def eigen(
    problem: Problem,
    number: int = 6,
    near: complex | None = None,
    *,
    tol: float = 1e-8,
    seed: int = 0,
    budget: float = 10.0,
) -> Spectrum:
    """Return eigenvalues of a linear problem, each with its error, and their eigenfunctions.

    Parameters
    ----------
    problem
        A homogeneous linear problem in one to three coordinates with one :func:`~pibls.eigenvalue` in its equations or
        conditions, to the first or second power.
    number
        How many eigenvalues to find.
    near
        Find those nearest to this number; left out, those with the smallest real part.
    tol
        Largest error of an eigenvalue, relative to its size, or to its distance from the point that they are searched
        from if that is larger. This point lies at ``near`` or below the spectrum.
    seed, budget
        As in :func:`~pibls.solve`.

    Examples
    --------
    >>> import sympy as sp, pibls as pb
    >>> x = pb.coordinates("x")
    >>> u, lam = pb.field("u", x), pb.eigenvalue("lam")
    >>> string = pb.Problem(sp.Eq(-u.diff(x, 2), lam * u), pb.Interval((x, 0, sp.pi)), [pb.Dirichlet(u, 0)])
    >>> found = pb.eigen(string, 4)
    >>> found.values.round(6).tolist()
    [1.0, 4.0, 9.0, 16.0]
    """
    pencil = Pencil.of(problem)
    check_integer("number", number, "eigen", minimum=1)
    check_number("tol", tol, "eigen", minimum=0, exclusive=True)
    if near is not None and not isinstance(near, int | float | complex):
        raise InputError(f"The 'near' parameter of eigen must be a number. Got {shorten(near)} instead.")
    if not suits_cells(problem):
        raise InputError("pibls.eigen needs a domain with an inside in one to three coordinates.")
    with blas_threads(most=1):
        shared, flaw = Budget.of(budget), flaw_of(pencil, -_sizes(pencil)[0])
        if not flaw and (found := _overdetermined(pencil, number, near, seed, shared)) is not None:
            return found
        tol, shared = (PLAIN, shared.part(most=GLANCE)) if flaw else (tol, shared)
        shift = _below(pencil, number, tol, seed, shared) if near is None else complex(near).real
        search, first = _begun(pencil, shift, near, number, tol, seed, shared)
        stop = refine(search, first, search.course)
        return _told(search, search.course.best, stop, lowest=near is None, flaw=flaw)


def _overdetermined(pencil: Pencil, number: int, near: complex | None, seed: int, budget: Budget) -> Spectrum | None:
    """If no eigenfunction of the other conditions keeps one that is too many, return these with words on it."""
    beyond, others = one_too_many(pencil, -_sizes(pencil)[0])
    if not beyond:
        return None
    found = eigen(others, number, near, tol=PLAIN, seed=seed, budget=min(GLANCE, budget.left))
    least = min(max(missed(own, statement) for statement in beyond) for own in found.solutions)
    if least < VISIBLE:
        return None
    names = joined([statement.name for statement in beyond])
    words = (
        f"The conditions contradict each other: {names} {'is' if len(beyond) == 1 else 'are'} beyond what determines "
        f"eigenfunctions. Without, the first eigenvalue is {found.values[0]:.6g}, and none of {len(found)} "
        f"eigenfunctions keeps {names}: they miss by {least:.0%} of its terms and more. Remove what is too much."
    )
    status, errors = Status.ILL_POSED, np.full(len(found), np.inf)
    return replace(found, problem=pencil.problem, status=status, errors=errors, message=words)


def _begun(
    pencil: Pencil, shift: float, near: complex | None, number: int, tol: float, seed: int, budget: Budget
) -> tuple[EigenSearch, Modes]:
    """Return a search at a shift, and the eigenvalues on its first tree."""
    start = start_of(pencil.at(shift), tol, budget, seed)
    linear = LinearFitter(TreeSolver(start.data.rows), budget)
    course: Course[_ComparedModes] = Course(budget, TREES, lambda *_: None)
    search = EigenSearch(pencil, linear, shift, shift if near is None else near, number, tol, seed, course)
    return search, search.modes(linear, start.root)


def _below(pencil: Pencil, number: int, tol: float, seed: int, budget: Budget) -> float:
    """Return a shift just below the spectrum; where that has no end, one near zero.

    The first look is from below all that a potential allows, where eigenvalues are not told apart as well.
    """
    scale, deepest = _sizes(pencil)
    shift = deepest - scale
    for _ in range(_SEARCHES):
        # One eigenvalue alone does not tell how far apart they are.
        _, modes = _begun(pencil, shift, None, number + SPARE, math.sqrt(tol), seed, budget)
        lowest, highest = float(modes.values.real.min()), float(modes.values.real.max())
        below = lowest - NEGLIGIBLE * max(highest - lowest, NEGLIGIBLE * scale)
        if lowest > shift:
            return max(below, shift)
        shift = below - abs(below)
    return -NEGLIGIBLE * scale


def _sizes(pencil: Pencil) -> tuple[float, float]:
    """Return the size of eigenvalues of functions as wide as the domain, and the least that a potential allows."""
    domain = pencil.problem.domain
    X, half = domain.sample(POINTS, "kronecker", 0), np.diff(np.array(domain.bounds), axis=1)[:, 0] / 2
    normals, sizes, deepest = np.ones((len(X), len(domain.space))), np.zeros(3), 0.0
    for statement in pencil.problem.statements:
        powers = pencil.terms(statement)
        for degree, terms in enumerate(powers):
            for (number, index), function in terms.items():
                value = function(X, normals)
                size = float(np.median(np.abs(value))) / float(np.prod(half ** np.array(index)))
                sizes[degree] = max(sizes[degree], size)
                mass = powers[1].get((number, index))
                if degree == 0 and not any(index) and mass is not None:
                    deepest = min(deepest, float((-value / mass(X, normals)).min()))
    scale = sizes[0] / sizes[1] if sizes[1] > 0.0 else np.sqrt(sizes[0] / sizes[2])
    return float(scale), deepest


def _matched(values: Any, better: Any) -> FloatArray:
    """Return how far the nearest of some eigenvalues is from each of better ones, each of them taken once."""
    from scipy.optimize import linear_sum_assignment

    apart = np.abs(better[:, None] - values[None, :])
    rows, columns = linear_sum_assignment(apart)
    found = np.full(len(better), np.inf)
    found[rows] = apart[rows, columns]
    return found


def _apart(found: _ComparedModes, same: float) -> FloatArray:
    """Return how far eigenfunctions are from those on the coarser tree, in the mean square.

    Those of eigenvalues that are the same to some distance count as one: any function in their span is one of them.
    """
    X = found.better.layout.tree_domain.domain.sample(POINTS, "kronecker", 0)
    coarse, fine = found.modes.at(X), found.better.at(X)
    apart = []
    for number, value in enumerate(found.better.values):
        away = np.abs(found.modes.values - value)
        span = coarse[:, away <= max(same, float(away.min()))]
        left = fine[:, number] - span @ np.linalg.lstsq(span, fine[:, number], rcond=None)[0]
        apart.append(float(np.linalg.norm(left) / np.linalg.norm(fine[:, number])))
    return np.array(apart)


def _told(search: EigenSearch, found: _ComparedModes, stop: Stop, *, lowest: bool, flaw: str) -> Spectrum:
    """Return the better eigenvalues of a comparison, in order."""
    values = found.better.values
    if lowest:
        order = np.lexsort((values.imag, values.real))
    else:
        order = np.argsort(np.abs(values - search.near), kind="stable")
    status, message = verdict(search.tol, found.estimate, stop, flaw=flaw)
    solutions, imaginary, apart = [], [], _apart(found, search.tol * float(np.abs(values - search.shift).max()))
    for number in order.tolist():
        layout, error = found.better.layout.restated(search.pencil.at(float(values[number].real))), float(apart[number])
        compared = (Comparison(own, layout, own, layout, error, 1.0) for own in found.better.one(number))
        made = [replace(solution_of(own, error, status, message, search.seed), richer=None) for own in compared]
        solutions.append(made[0])
        imaginary.append(made[1] if values[number].imag and not search.pencil.is_complex else None)
    values = values[order] if values.imag.any() else values[order].real
    functions = tuple(solutions), tuple(imaginary)
    errors = np.full(len(values), np.inf) if flaw else found.errors[order]
    return Spectrum(search.pencil.problem, values, errors, *functions, status, message)
