"""The quantities that a solution is asked for: each is found in :mod:`pibls.quantities`."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class Measurable:
    """Offers quantities: values, integrals, extremes, flows, forces, events; each with its error."""

    @cached_property
    def _measures(self) -> Any:
        from pibls.quantities import Measures

        return Measures(self)  # type: ignore[arg-type]

    def value(self, expression: Any) -> Any:
        """Return an expression of fields as a function of points, which has the method ``error``, too.

        Parameters
        ----------
        expression
            Any expression of fields, derivatives, coordinates and materials; with the outward normal, points must be
            on the boundary. ``u.subs(t, 1)`` is the field at a time.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> solution = solve(problems.poisson())
        >>> u, (x, y) = solution.problem.fields[0], solution.problem.domain.coordinates
        >>> steepness = solution.value(u.diff(x) ** 2 + u.diff(y) ** 2)
        >>> steepness([[0.0, 0.5], [0.5, 0.5], [2.0, 0.5]]).round(6) + 0.0
        array([9.869604, 0.      ,      nan])
        >>> bool(steepness.error([[0.0, 0.5]]) < 1e-4)
        True
        """
        return self._measures.value(expression)

    def integral(self, expression: Any, over: Any = None, *, at: float | None = None) -> Any:
        """Return the integral of an expression as a :class:`~pibls.quantities.Quantity`.

        Parameters
        ----------
        expression
            Any expression of fields, derivatives, coordinates, materials, and of :func:`~pibls.normal` on surfaces.
            On an interface, :func:`~pibls.inside` and :func:`~pibls.outside` say which side is meant; without them it
            is the inner one.
        over
            The domain if left out; a part of the boundary, an :class:`~pibls.Interface`, or a shape, of which the part
            in the domain counts; or a part of its boundary.
        at
            A time, for a problem in space and time; without one, integrals are over time, too.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> solution = solve(problems.poisson())
        >>> u, square = solution.problem.fields[0], solution.problem.domain
        >>> found = solution.integral(u)
        >>> bool(abs(found.value - 4 / 3.141592653589793**2) <= 10 * found.error)
        True
        """
        return self._measures.integral(expression, over, at)

    def mean(self, expression: Any, over: Any = None, *, at: float | None = None) -> Any:
        """Return the mean of an expression; see :meth:`integral`."""
        return self._measures.integral(expression, over, at, mean=True)

    def maximum(self, expression: Any, over: Any = None, *, at: float | None = None) -> Any:
        """Return the largest value of an expression, with its place; see :meth:`integral` for the parameters.

        Where values grow without bound, as stresses do in a re-entrant corner, the error is infinite.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> solution = solve(problems.poisson())
        >>> found = solution.maximum(solution.problem.fields[0])
        >>> round(found.value, 6), found.place.round(4).tolist()
        (1.0, [0.5, 0.5])
        """
        return self._measures.extreme(expression, 1.0, over, at)

    def minimum(self, expression: Any, over: Any = None, *, at: float | None = None) -> Any:
        """Return the smallest value of an expression, with its place; see :meth:`maximum`."""
        return self._measures.extreme(expression, -1.0, over, at)

    def first_time(self, expression: Any, *, at: Any = None, over: Any = None) -> Any:
        """Return the first time at which an expression becomes zero, or an inequality true.

        If it never does, the value is infinite. A zero at the very start does not count.

        Parameters
        ----------
        expression
            An expression of fields, or an inequality.
        at
            A point of space; ``u.subs(x, 0)`` in the expression says the same.
        over
            A region of space, or a part of the boundary, of which the mean counts.

        Examples
        --------
        >>> from pibls import Initial, Problem, TimeInterval, coordinates, field, solve
        >>> t = coordinates("t")
        >>> u = field("u", t)
        >>> solution = solve(Problem(u.diff(t) + u, TimeInterval(t, 0, 2), [Initial(u, 1)]))
        >>> round(solution.first_time(u < 0.5).value, 5)
        0.69315
        """
        return self._measures.first_time(expression, over, at)

    def flow(self, part: Any, field: Any = None, *, at: float | None = None) -> Any:
        """Return the flow out of the domain through a part of its boundary: the integral of −k ∂u/∂n.

        The flux is that of the equation, with all that is in its divergence; see :func:`~pibls.flux`. Through an
        interface it is what flows from inside to outside.

        Parameters
        ----------
        part
            A part of the boundary, or an interface.
        field
            The field that flows, if there are several.
        at
            A time, for a problem in space and time; without one, the flow over all times.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> solution = solve(problems.poisson())
        >>> square = solution.problem.domain
        >>> round(solution.flow(square.left).value, 6)
        2.0
        """
        return self._measures.flow(part, field, at)

    def force(self, part: Any, fields: Any = None, *, at: float | None = None) -> Any:
        """Return the force on a body through a part of its boundary, one quantity per space coordinate.

        It is the integral of the traction, stresses times the outward normal: on a clamped side, the reaction. A fluid
        acts on an obstacle with the opposite force.

        Parameters
        ----------
        part
            A part of the boundary.
        fields
            The displacements or velocities, if there are other fields with equations of second order: ``[u, v]``.
        at
            A time, for a problem in space and time.

        Examples
        --------
        >>> import pibls as pb, sympy as sp
        >>> x, y = pb.coordinates("x y")
        >>> u, v, square = pb.field("u", x, y), pb.field("v", x, y), pb.Rectangle((x, 0, 1), (y, 0, 1))
        >>> sheet = pb.stress([u, v], young=1, poisson=0, plane="stress")
        >>> held = [pb.Dirichlet(u, 0, on=square.left), pb.Dirichlet(v, 0, on=square.left)]
        >>> loads = [load for side in (square.top, square.bottom) for load in pb.Traction(sheet, 0, on=side)]
        >>> loads += pb.Traction(sheet, [3, 0], on=square.right)
        >>> equations = [sp.Eq(pb.div(row), 0) for row in sheet.tolist()]
        >>> solution = pb.solve(pb.Problem(equations, square, [*held, *loads]), tol=1e-4)
        >>> [round(entry.value, 6) + 0.0 for entry in solution.force(square.left)]
        [-3.0, 0.0]
        """
        return self._measures.force(part, fields, at)
