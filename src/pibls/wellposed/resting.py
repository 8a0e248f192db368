"""Solutions that may leave a state of rest whenever they like: first-order equations that are not Lipschitz there.

w′² = 4 w with w = 0 at first is solved by zero, by x², and by all that rest for a while before they leave. So it is
where the rate of change grows faster than any multiple of the distance from the state of rest, by a power of it.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

from pibls.errors import PiblsError
from pibls.problem import OnPart, Problem
from pibls.problem.analysis import analysis_of
from pibls.problem.evaluate import Function, compile_function
from pibls.refinement import ROUNDING
from pibls.refinement.standards import NEGLIGIBLE, PLAIN, POINTS
from pibls.wellposed.boundary_counts import equations_in_words
from pibls.wellposed.compatibility import SAMPLES


def leaves_at_will(problem: Problem) -> str:
    """Say from which state a solution may leave whenever it likes, and how fast; else an empty text.

    >>> import pibls as pb
    >>> x = pb.coordinates("x")
    >>> w, line = pb.field("w", x), pb.Interval((x, 0, 1))
    >>> for start in (0, 1):
    ...     given = [pb.Dirichlet(w, start, on=line.left)]
    ...     print(leaves_at_will(pb.Problem(sp.Eq(w.diff(x) ** 2, 4 * w), line, given))[:80])
    The solution is not unique: w = 0 solves w_x**2 = 4*w, and so does a solution th
    <BLANKLINE>
    """
    equations, given = analysis_of(problem).equations, [s for s in problem.statements if not s.is_equation]
    if len(problem.domain.coordinates) != 1 or len(equations) != 1 or len(given) != 1 or problem.is_linear:
        return ""
    form, (start,) = equations[0].form, given
    slots = {term.order: term.slot for term in form.terms}
    told = [(term.order, start.form.is_linear) for term in start.form.terms]
    if set(slots) != {0, 1} or told != [(0, True)] or not isinstance(start.place, OnPart):
        return ""
    place = float(start.place.part.sample(1).points[0, 0])
    low, high = problem.domain.bounds[0]
    function = compile_function(form.residual, problem.domain.coordinates, (slots[0], slots[1]))
    value = -start.form.source / start.form.terms[0].coefficient
    try:
        rest = float(value.subs(problem.domain.coordinates[0], sp.Float(place)))
        X = np.linspace(low, high, SAMPLES)
        if np.abs(function(X[:, None], None, [np.full(len(X), rest), np.zeros(len(X))])).max() > 0:
            return ""
    except (PiblsError, TypeError):
        return ""  # it is no state of rest, or has no value there
    ahead = 1.0 if place < high else -1.0
    far, near = (_leaving(function, X[len(X) // 2], rest, distance, ahead) for distance in (PLAIN, ROUNDING))
    # A power of the distance below one. A logarithm, by which nothing leaves in a finite time, grows much less.
    if not NEGLIGIBLE * near > far > 0:
        return ""
    name = problem.field_names[0]
    return (
        f"The solution is not unique: {name} = {rest:.3g} solves {equations_in_words(problem, equations)}, and so does "
        f"a solution that leaves it, wherever it likes: at a distance of {PLAIN:.0e} it leaves at {far:.1g} times the "
        f"distance, at {ROUNDING:.0e} at {near:.1g} times. Give another value, or a condition at the other end."
    )


def _leaving(function: Function, place: float, rest: float, distance: float, ahead: float) -> float:
    """Return the fastest rate away from a state at a distance of it, over that; zero if nothing leaves there."""
    found, sizes = 0.0, np.geomspace(ROUNDING**2, ROUNDING**-2, POINTS)
    for side in (-1.0, 1.0):
        rates, value = side * ahead * sizes, np.full(POINTS, rest + side * distance)
        try:
            left = function(np.full((POINTS, 1), place), None, [value, rates])
        except PiblsError:
            continue  # the equation has no value on that side
        changes = np.flatnonzero(np.sign(left[1:]) * np.sign(left[:-1]) < 0)
        found = max(found, *(sizes[changes] / distance), 0.0)
    return found
