"""Analysis of a problem by its symbols alone, made once per problem and passed on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.problem.carried import carried_curves
from pibls.problem.fluxes import carriers, normal_flux
from pibls.problem.lowering import Form
from pibls.problem.places import Across
from pibls.problem.problem import Problem
from pibls.problem.statements import Statement, lowered
from pibls.problem.switches import Switching, has_branches


def analysis_of(problem: Problem) -> Analysis:
    """Return the analysis of a problem; a second call returns the same.

    >>> from pibls.problems import poisson, stokes
    >>> problem = poisson()
    >>> found = analysis_of(problem)
    >>> found is analysis_of(problem), found.orders.tolist(), found.is_constant, found.switching
    (True, [[2, 2]], True, None)
    >>> analysis_of(stokes()).carriers
    {'u': 0, 'v': 1}
    """
    return problem.once(Analysis)


@dataclass(frozen=True, eq=False)
class Analysis:
    """Orders, constancy, fluxes and switches of a problem; each is found when it is first asked for."""

    problem: Problem

    @cached_property
    def equations(self) -> tuple[Statement, ...]:
        """The differential equations."""
        return tuple(s for s in self.problem.statements if s.is_equation)

    @cached_property
    def orders(self) -> Any:
        """Highest order of derivative of each field along each axis, shape (fields, axes)."""
        found = np.zeros((len(self.problem.fields), len(self.problem.domain.coordinates)), dtype=np.int64)
        for term in (term for equation in self.equations for term in equation.form.terms):
            own = self.problem.field_names.index(term.field)
            found[own] = np.maximum(found[own], term.multi_index)
        return found

    @cached_property
    def is_constant(self) -> bool:
        """Whether the equations are linear and all their coefficients are numbers."""
        return all(e.form.is_linear and e.form.is_constant for e in self.equations)

    @cached_property
    def carriers(self) -> dict[str, int]:
        """The number of the equation by which each field flows, for fields of second order in space."""
        return carriers([e.form for e in self.equations], self.problem.field_names, len(self.problem.domain.space))

    @cached_property
    def fluxes(self) -> tuple[Form | None, ...]:
        """The flux along the normal by each equation that is written as a divergence, as a form."""
        domain = self.problem.domain
        given = [normal_flux(equation, domain.space) for equation in self.problem.equations]
        return tuple(None if flux is None else lowered(flux, domain, "the flux", normals=True) for flux in given)

    @cached_property
    def conserved(self) -> dict[str, int]:
        """The number of the equation that conserves each field of first order in space, if it is a divergence of it.

        Its flux is continuous, not the field.
        """
        found, space = {}, len(self.problem.domain.space)
        for i, flux in enumerate(self.fluxes):
            names = set() if flux is None else {term.field for term in flux.terms}
            if flux is None or len(names) != 1 or any(any(term.multi_index) for term in flux.terms):
                continue
            (name,) = names
            if self.orders[self.problem.field_names.index(name), :space].max() == 1:
                found[name] = i
        return found

    @cached_property
    def waves(self) -> frozenset[int]:
        """The numbers of equations like u_tt = c² u_xx, not written as a divergence: slopes are continuous in them.

        Divided by a c² that jumps, as for a string of two wires, nothing but slopes is left to be differentiated.
        """
        time = self.problem.domain.time
        own = [e.form for e in self.equations] if time is not None else []
        found = [any(form.order_along(time, name) == 2 for name in form.fields) for form in own]
        return frozenset(i for i, second in enumerate(found) if second and self.fluxes[i] is None)

    @cached_property
    def switching(self) -> Switching | None:
        """Where data switch; None where neither equations nor conditions have branches, and there is no interface."""
        steep = self.problem.domain.time is None and any(equation.form.order > 1 for equation in self.equations)
        carried = () if steep else carried_curves(self.problem)
        found = any(has_branches(s.form.residual) or isinstance(s.place, Across) for s in self.problem.statements)
        found = found or any(map(has_branches, self.problem.equations))
        jumping = frozenset(curve.level for curve in carried if curve.jumps)
        levels = tuple(curve.level for curve in carried)
        return Switching(self.problem, levels, jumping) if found or carried else None

    @property
    def jumps(self) -> bool:
        """Whether the coefficient of a highest derivative in space, or another term of a flux, jumps anywhere."""
        return self.switching is not None and self.switching.jumps
