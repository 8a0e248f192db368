"""Tools to pose problems with a known solution, and to divide a set into two halves by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.sets.case import Case
from pibls.problems.manufactured import applied, manufactured

ASKED, SEEDS = (1e-2, 1e-4, 1e-6), (0, 1)
Exact = Mapping[Any, Any]


def told(expression: Any, exact: Exact, domain: Any, on: Any = None) -> pb.Condition:
    """Return the condition that an expression has the value that it has for the exact solution."""
    return pb.Condition(sp.Eq(expression, applied(expression, exact, domain), evaluate=False), on=on)


def held(exact: Exact, on: Any = None) -> list[pb.Condition]:
    """Return the conditions that all fields have their exact values on a part, or on all of the boundary."""
    return [pb.Dirichlet(of, value, on=on) for of, value in exact.items()]


def posed(operators: Any, exact: Exact, domain: Any, conditions: Sequence[Any] | None = None) -> pb.Problem:
    """Return the problem whose sources follow from its operators; values are given all round unless conditions are."""
    several = operators if isinstance(operators, list) else [operators]
    equations = [manufactured(operator, exact, domain) for operator in several]
    return pb.Problem(equations, domain, held(exact) if conditions is None else conditions, exact=dict(exact))


def begun(exact: Exact, domain: Any, orders: int = 1) -> list[pb.Condition]:
    """Return the initial conditions of all fields, of as many orders in time."""
    clock = domain.time
    first = sp.Rational(str(float(domain.bounds[domain.coordinates.index(clock)][0])))
    return [
        pb.Initial(of.diff(clock, k) if k else of, sp.sympify(value).diff(clock, k).subs(clock, first))
        for of, value in exact.items()
        for k in range(orders)
    ]


def halves(*lists: Mapping[str, Case]) -> tuple[dict[str, Case], dict[str, Case]]:
    """Return two halves of some lists, divided by chance, each in the order of the lists."""
    together = [case for cases in lists for case in cases.values()]
    aside = set(np.random.default_rng(7).permutation(len(together))[: len(together) // 2].tolist())
    parts: tuple[dict[str, Case], dict[str, Case]] = ({}, {})
    for number, case in enumerate(together):
        parts[number in aside][case.name] = case
    return parts
