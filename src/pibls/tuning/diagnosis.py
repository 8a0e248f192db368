"""Solves by cells, and the diagnosis of problems whose solutions are in doubt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import sympy as sp

from pibls.budget import Budget
from pibls.cells import solve_cells, solve_cells_nonlinear
from pibls.cells.cluster import ClusterSolver
from pibls.cells.fitters import LinearFitter
from pibls.cells.linear import Start, start_of
from pibls.cells.loop import Diagnose, Loop
from pibls.errors import PiblsError
from pibls.evolution import Evolution, Unsuitable, evolve, find_evolution
from pibls.features.reference import SINES, Cells
from pibls.geometry import Interval, TimeInterval
from pibls.problem import Across, Condition, OnPart, Problem, Statement, normal
from pibls.problem.analysis import analysis_of
from pibls.problem.evaluate import compile_function
from pibls.refinement import VISIBLE
from pibls.refinement.standards import NEGLIGIBLE, PLAIN, POINTS, SLIGHT
from pibls.refinement.stopping import GLANCE
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.solution.evolved import EvolvedNetwork
from pibls.solution.residuals import root_mean_square
from pibls.status import Status
from pibls.tuning.first_word import first_word
from pibls.tuning.fitting import Fitting
from pibls.tuning.progress import Progress
from pibls.wellposed.compatibility import incompatibility
from pibls.wellposed.contradiction import Clash, clash_beyond, contradiction_of, find_clash
from pibls.wellposed.kinks import kink_in
from pibls.wellposed.net_sources import imbalance
from pibls.wellposed.sensitivity import SENSITIVE, sensitivity_at, sensitivity_of
from pibls.wellposed.stability import unbounded_growth
from pibls.wellposed.surplus import end_by_end, surplus_of

_PLAINLY = 0.25  # share of its size that a statement lacks of what is called a solution, or of its points


def solve_by_cells(
    problem: Problem,
    tol: float,
    budget: Budget,
    seed: int,
    report: Callable[[Progress], None],
    *,
    start: Any = None,
    continuation: Sequence[Problem] = (),
    assume_well_posed: bool = False,
    nodes: Cells = SINES,
    cluster: Any = None,
) -> Solution:
    """Solve a problem by cells; where the solution is in doubt, find out whether the problem is to blame."""
    common: dict[str, Any] = {"seed": seed, "report": lambda *facts: report(Progress(*facts)), "nodes": nodes}
    # The fronts of subtrees are large matrices, which are joined on all cores.
    with blas_threads(most=1 if cluster is None else None):
        if not problem.is_linear:
            common |= {"start": start, "continuation": continuation, "assume_well_posed": assume_well_posed}
            if assume_well_posed:
                return solve_cells_nonlinear(problem, tol, budget, **common)
            common |= {"diagnose": _kinked, "early": partial(_nonlinear_flaw, tol, budget, seed)}
            solve: Callable[..., Solution] = partial(solve_cells_nonlinear, **common)
            return (
                _unbalanced(problem, tol, budget, solve)
                or _overdetermined(problem, tol, budget, solve)
                or _ending(problem, tol, budget, solve)
                or solve(problem, tol, budget)
            )
        if cluster is not None:
            common["solver"] = partial(ClusterSolver, client=cluster)
        first = start_of(problem, tol, budget, seed, nodes)
        if assume_well_posed:
            return solve_cells(problem, tol, budget, start=first, undetermined=np.inf, **common)

        def glanced(at: Problem, tol: float, diagnose: Diagnose | None = None) -> Solution:
            return solve_cells(at, tol, budget.part(most=GLANCE), diagnose=diagnose, **common)

        told = _told_at_once(first, tol, glanced)
        diagnose = partial(flaw_of, tol, budget, seed)
        return told or solve_cells(problem, tol, budget, start=first, diagnose=diagnose, **common)


def _told_at_once(start: Start, tol: float, glanced: Callable[..., Solution]) -> Solution | None:
    """If the conditions alone are inconsistent, return a quick solution that says why; else None."""
    problem = start.data.rows.problem
    given = [s.form for s in problem.statements if not s.is_equation]
    higher = len(problem.domain.coordinates) > 1 and all(form.order > 1 for form in problem.laws.forms)
    if higher and len(given) == 1 and given[0].order == 0:
        return None  # one condition on values contradicts no other one, prescribes no flux, and is not too many
    lost, clash = incompatibility(problem, tol, lambda: start), find_clash(problem)
    ends = end_by_end(problem)
    needed, surplus = _parted(ends) if len(ends.statements) > 2 and not lost and clash is None else (ends, ())
    if surplus and not first_word(needed):
        clash = _beyond(surplus, glanced(needed, NEGLIGIBLE * min(tol, PLAIN)))
    if not lost and clash is None:
        return None
    solution = glanced(
        problem, tol, diagnose=lambda made, _: (lost or (clash.in_words(made, tol) if clash is not None else ""), "")
    )
    return solution if solution.status == Status.ILL_POSED else None


def _unbalanced(problem: Problem, tol: float, budget: Budget, solve: Callable[..., Solution]) -> Solution | None:
    """If sources and fluxes of a nonlinear problem do not balance, return a quick solution that says so; else None."""
    lost = imbalance(problem, tol, lambda: start_of(problem, max(tol, PLAIN)))
    return solve(problem, tol, budget.part(most=GLANCE), early=lambda *_: (lost, "")) if lost else None


def _overdetermined(problem: Problem, tol: float, budget: Budget, solve: Callable[..., Solution]) -> Solution | None:
    """If a condition of a nonlinear problem contradicts a solution of the others, return that one, with the words.

    There may be another solution with which it agrees: all conditions are tried first. What these find may as well be
    the same solution, with what it contradicts in a thin layer.
    """
    ends = end_by_end(problem)
    needed, surplus = _parted(ends)
    if not surplus or first_word(needed):
        return None
    others = solve(needed, PLAIN, budget.part(NEGLIGIBLE))
    clash = _beyond(surplus, others)
    words = "" if clash is None else clash.in_words(others, tol)
    together = solve(problem, tol, budget.part(NEGLIGIBLE)) if words else others
    if not words or (together.status == Status.CONVERGED and _are_two(together, others)):
        return together if words else None
    return flawed(together, words)


def _ending(problem: Problem, tol: float, budget: Budget, solve: Callable[..., Solution]) -> Solution | None:
    """If all is given at the left of a line, and no solution comes to the right, return one that says so; else None.

    It is followed as if the line were time.
    """
    followed = _as_in_time(problem)
    if followed is None:
        return None
    try:
        course = evolve(followed, tol=PLAIN, budget=budget.part(NEGLIGIBLE))
    except PiblsError:
        return None  # rates may be infinite at the start, as in polar coordinates
    if isinstance(course, Unsuitable) or course.status != Status.ILL_POSED:
        return None
    end, (first, last) = float(cast(EvolvedNetwork, course.network).breaks[-1]), followed.domain.bounds[0]
    if end >= last:
        return None
    return flawed(
        solve(problem, tol, budget.part(most=GLANCE)),
        f"The solution ceases to exist: followed from {first:.4g}, it blows up, or becomes infinitely steep, near "
        f"{followed.domain.coordinates[0].name} = {end:.4g}. End earlier, or check signs and values.",
    )


def _as_in_time(problem: Problem) -> Problem | None:
    """Return a problem on a line on whose left all is given as if the line were time; None if it is another one."""
    line, low = problem.domain, problem.domain.bounds[:1, :1]
    if not isinstance(line, Interval):
        return None
    given = [s for s in problem.statements if not s.is_equation]
    parts = [s.place.part for s in given if isinstance(s.place, OnPart)]
    if len(parts) < len(given) or not all(part.measure == 1.0 and part.contains(low).all() for part in parts):
        return None
    span = TimeInterval(line.coordinates[0], *line.bounds[0].tolist())
    outward = normal(line.coordinates[0])
    left = [s.form.expression.xreplace({outward: sp.S.NegativeOne}) for s in given]
    conditions = [Condition(sp.Eq(own, 0, evaluate=False), on=span.initial) for own in left]
    return Problem(problem.equations, span, conditions)


def flawed(solution: Solution, words: str) -> Solution:
    """Return a solution as that of an ill-posed problem, with the words on why."""
    record = replace(solution.diagnostics, message=words)
    return replace(solution, status=Status.ILL_POSED, error_estimate=np.inf, diagnostics=record)


def _are_two(one: Solution, other: Solution) -> bool:
    """Tell whether two solutions differ plainly by more than their errors."""
    X = one.problem.domain.sample(POINTS, "kronecker", 1)
    slots = [(name, (0,) * X.shape[1]) for name in one.problem.field_names]
    allowed = sum(own.error_estimate or 0.0 for own in (one, other)) / NEGLIGIBLE
    pairs = zip(one.evaluate(X, slots), other.evaluate(X, slots), strict=True)
    return any(root_mean_square(a - b) > allowed * root_mean_square(b) for a, b in pairs)


def _parted(problem: Problem) -> tuple[Problem, tuple[Statement, ...]]:
    """Return a problem with just enough conditions, and those beyond: slopes all around need a level, too."""
    surplus = surplus_of(problem)
    for statement in surplus:
        if not first_word(_without(problem, surplus)):
            break
        surplus = tuple(own for own in surplus if own is not statement)
    return _without(problem, surplus), surplus


def _without(problem: Problem, surplus: Sequence[Statement]) -> Problem:
    return problem.with_statements([s for s in problem.statements if s not in surplus])


def _beyond(surplus: Sequence[Statement], others: Solution) -> Clash | None:
    """Return a difference between conditions and the solution of all others, as far as this is known."""
    if others.status == Status.ILL_POSED or not (others.error_estimate or 0.0) <= PLAIN:
        return None
    return next(filter(None, (clash_beyond(statement, others) for statement in surplus)), None)


def _nonlinear_flaw(tol: float, budget: Budget, seed: int, solution: Solution, _: Loop) -> tuple[str, str]:
    """Say why a nonlinear problem is ill-posed, if its conditions contradict each other, or determine no solution."""
    clash = find_clash(solution.problem)
    if clash is not None and (words := clash.in_words(solution, tol)):
        return words, ""
    found = sensitivity_at(solution.problem, solution.network, seed)
    if found is None:
        return "", ""
    budget.spend(found.operations)
    return found.in_words() if found.is_unseen or found.is_unstable else "", ""


def _kinked(_: Solution, loop: Loop) -> tuple[str, str]:
    """Say where a solution jumps from one root of a nonlinear equation to another."""
    return "" if loop.reported is None else kink_in(loop.reported), ""


def flaw_of(tol: float, budget: Budget, seed: int, solution: Solution, loop: Loop) -> tuple[str, str]:
    """Say why a linear problem is ill-posed, or how its jumps were read where nothing is wrong."""
    problem = solution.problem
    evolution = find_evolution(problem) if problem.domain.time is not None else None
    if isinstance(evolution, Evolution) and (growth := unbounded_growth(evolution, solution.network)):
        return growth, ""
    is_certain = len(problem.domain.coordinates) == 1 and _is_initial(problem)
    unmet, contradiction = not is_certain and _is_in_doubt(solution, tol), ""
    if unmet or (not is_certain and (solution.diagnostics.condition or 0.0) > SENSITIVE):
        found = sensitivity_of(problem, seed, cast(LinearFitter, loop.fitter))
        budget.spend(found.operations)
        if found.is_unseen or found.is_unstable:
            return found.in_words(), ""
        # A sensitive problem may have a residual because its solution is not found yet. Networks know no interfaces.
        joined = any(isinstance(s.place, Across) for s in problem.statements)
        if unmet and max(found.sizes) < SENSITIVE and not joined:
            contradiction = _contradiction(solution, seed, budget)
    switching = analysis_of(problem).switching
    return contradiction, "" if switching is None else switching.reading


def _is_initial(problem: Problem) -> bool:
    """Tell whether, along one line, initial values and finite rates determine one solution, however much it grows."""
    alone = _as_in_time(problem) if problem.domain.time is None else problem if not problem.domain.space else None
    if alone is None or first_word(alone) or not isinstance(evolution := find_evolution(alone), Evolution):
        return False
    rates = [own for slopes in evolution.slopes.values() for own in slopes.values()]
    under = [compile_function(sp.fraction(sp.together(own))[1], alone.domain.coordinates) for own in rates]
    first, last = alone.domain.bounds[0].tolist()
    signs = [np.sign(own(np.linspace(first, last, POINTS)[:, None], None)) for own in under]
    return all(own.all() and (own == own[0]).all() for own in signs)


def _is_in_doubt(solution: Solution, tol: float) -> bool:
    """Tell whether equations or conditions are plainly not fulfilled.

    A solution that is accurate enough may lack much of an equation where cells are coarse; if rows lack no more than
    the tolerance in units of the solution, that does not matter.
    """
    if solution.status == Status.CONVERGED:
        lacking = solution.diagnostics.stages[-1].residual or 0.0
        return lacking > min(tol, SLIGHT) and max(_unmet(solution).values(), default=0.0) > _PLAINLY
    unmet = bool(_unmet(solution))
    if not unmet or solution.richer is None or not (solution.error_estimate or 0.0) < 1.0:
        return unmet
    # A coarse solution is in no doubt if the finer one that it was compared with fulfils everything.
    return bool(_unmet(solution.richer_solution))


def _unmet(solution: Solution) -> dict[str, float]:
    """Return which equations and conditions are plainly not fulfilled, not only near some points, and their lack.

    That is relative to the largest of their terms, which on a boundary with zero values are of the size that they have
    inside.
    """
    interior, found = solution.problem.domain.sample(POINTS, "kronecker", 3), {}
    for statement in solution.problem.statements:
        X, normals, form = interior, None, statement.form
        if isinstance(statement.place, OnPart):
            X, normals = statement.place.part.sample(POINTS, "kronecker", 3)
        elif not statement.is_equation:
            continue
        slots = [(term.field, term.multi_index) for term in form.terms]
        inside = solution.evaluate(interior, slots)
        state = inside if X is interior else solution.evaluate(X, slots)
        left = form.residual_at(X, normals, state)
        sizes = (max(np.abs(own).max() for own in pair) for pair in zip(state, inside, strict=True))
        terms = [f(X, normals) * size for f, size in zip(form.coefficient_functions, sizes, strict=True)]
        size = float(max(np.abs(own).max() for own in [form.source_function(X, normals), *terms]))
        if np.mean(np.abs(left) > VISIBLE * size) > _PLAINLY:
            found[statement.name] = root_mean_square(left) / size
    return found


def _contradiction(solution: Solution, seed: int, budget: Budget) -> str:
    """Say which statements contradict each other, if any do."""
    if not contradiction_of(Fitting(solution.problem, seed), budget):
        return ""
    name, lack = max(_unmet(solution).items(), key=lambda item: item[1])
    residual = solution.diagnostics.residuals[name].rms if name in solution.diagnostics.residuals else np.nan
    return (
        f"The equations and conditions contradict each other: {name} keeps a residual of {residual:.1g}, {lack:.0%} of "
        "its largest term, however many cells there are, though the best compromise is found. Check signs and values, "
        "or remove a condition."
    )
