"""Analysis of a problem by its symbols alone, made once per problem and passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from pibls.problem.carried import carried_curves
from pibls.problem.lowering import Form
from pibls.problem.places import Across
from pibls.problem.problem import Problem
from pibls.problem.shocks import fronts_of
from pibls.problem.switches import Switching, has_branches


def analysis_of(problem: Problem) -> Analysis:
    """Return the analysis of a problem; a second call returns the same.

    >>> from pibls.problems import poisson, stokes
    >>> problem = poisson()
    >>> found = analysis_of(problem)
    >>> found is analysis_of(problem), found.orders.tolist(), found.is_constant, found.switching
    (True, [[2, 2]], True, None)
    >>> analysis_of(stokes()).flowing
    {('u', 1): 0, ('v', 1): 1}
    """
    return problem.once(Analysis)


@dataclass(frozen=True, eq=False)
class Analysis:
    """Orders, constancy, fluxes and switches of a problem; each is found when it is first asked for."""

    problem: Problem

    @cached_property
    def orders(self) -> Any:
        """Highest order of derivative of each field along each axis, shape (fields, axes)."""
        found = np.zeros((len(self.problem.fields), len(self.problem.domain.coordinates)), dtype=np.int64)
        for term in (term for form in self.problem.laws.forms for term in form.terms):
            own = self.problem.field_names.index(term.field)
            found[own] = np.maximum(found[own], term.multi_index)
        return found

    @cached_property
    def is_constant(self) -> bool:
        """Whether the equations are linear and all their coefficients are numbers."""
        return all(form.is_linear and form.is_constant for form in self.problem.laws.forms)

    @property
    def fluxes(self) -> tuple[Form | None, ...]:
        """The flux along the normal by each equation that is written as a divergence, as a form."""
        return self.problem.laws.fluxes

    @cached_property
    def flowing(self) -> dict[tuple[str, int], int]:
        """The number of the equation whose flux is continuous, by field and order: in place of its slope, or value.

        A field of second order in space flows by a flux of slopes; one of first order that an equation conserves, if
        it is a divergence of this field alone, by a flux of values.
        """
        found = {(name, 1): i for name, i in self.problem.laws.carriers.items()}
        orders = dict(zip(self.problem.field_names, self.orders[:, : len(self.problem.domain.space)], strict=True))
        for i, flux in enumerate(self.fluxes):
            if flux is not None and flux.order == 0 and len(flux.fields) == 1 and orders[flux.fields[0]].max() == 1:
                found[flux.fields[0], 0] = i
        return found

    @cached_property
    def keeps_waves(self) -> bool:
        """Whether waves may last in time: unlike in a heat equation, some field that changes does not damp its own.

        >>> from pibls.problems import heat_robin, wave
        >>> [analysis_of(make()).keeps_waves for make in (heat_robin, wave)]
        [False, True]
        """
        if self.problem.domain.time is None:
            return False
        for form in self.problem.laws.forms:
            top = max((term.order for term in form.terms if not term.multi_index[-1]), default=0)
            for moving in (term for term in form.terms if term.multi_index[-1]):
                own = max((t.order for t in form.terms if t.field == moving.field and not t.multi_index[-1]), default=0)
                if moving.multi_index[-1] > 1 or own < top or own % 2 or not own:
                    return True
        return False

    @cached_property
    def waves(self) -> frozenset[int]:
        """The numbers of equations like u_tt = c² u_xx, not written as a divergence: slopes are continuous in them.

        Divided by a c² that jumps, as for a string of two wires, nothing but slopes is left to be differentiated.
        """
        time, forms = self.problem.domain.time, self.problem.laws.forms
        found = [time is not None and any(own.order_along(time, name) == 2 for name in own.fields) for own in forms]
        return frozenset(i for i, second in enumerate(found) if second and self.fluxes[i] is None)

    @cached_property
    def switching(self) -> Switching | None:
        """Where data switch; None where neither equations nor conditions have branches, and there is no interface."""
        found = any(has_branches(s.form.residual) or isinstance(s.place, Across) for s in self.problem.statements)
        found = found or any(map(has_branches, self.problem.equations))
        return Switching(self.problem, self.carried) if found or self.carried else None

    @cached_property
    def carried(self) -> Mapping[sp.Expr, sp.Expr]:
        """Expressions that vanish where jumps and kinks of data are carried, and how much a wave jumps there."""
        if self.problem.domain.time is None and any(form.order > 1 for form in self.problem.laws.forms):
            return {}
        fronts = self.problem.once(fronts_of)
        return {curve.level: curve.jump for curve in (fronts.curves if fronts else carried_curves(self.problem))}

    @property
    def jumps(self) -> bool:
        """Whether the coefficient of a highest derivative in space, or another term of a flux, jumps anywhere."""
        return self.switching is not None and self.switching.jumps
