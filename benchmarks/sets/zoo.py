"""The problems that come with the library: the zoo, its evolutions, everyday problems and ill-posed ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

import pibls as pb
from benchmarks.sets.case import Case
from pibls.problems import evolving
from pibls.problems.everyday import VALUES

_SEEDS = (0, 1, 2)
# An evolution of which more is asked than the usual tolerance.
_SHARPER = {"burgers": 1e-7}


def _at_points(solution: pb.Solution) -> float:
    known = pb.problems.references()["bratu_unforced"]
    return float(np.abs(solution(known.points) - known.values).max() / np.abs(known.values).max())


def steady(*, linear: bool) -> dict[str, Callable[[], pb.Problem]]:
    """Return the problems with an exact solution that are not in the set of evolutions."""
    found, others = pb.problems.catalogue(linear=linear, exact=True), pb.problems.evolutions()
    return {name: make for name, make in found.items() if name not in others}


def linear() -> dict[str, Case]:
    """Return the linear problems of the zoo."""
    made = steady(linear=True).items()
    return {
        name: Case(name, make, lambda solution: solution.true_error(), "linear", (1e-6,), _SEEDS) for name, make in made
    }


def nonlinear() -> dict[str, Case]:
    """Return the steady nonlinear problems of the zoo, at two tolerances."""
    timeless = {n: make for n, make in steady(linear=False).items() if make().domain.time is None}
    whole = Case("", pb.problems.bratu, lambda solution: solution.true_error(), "nonlinear", (1e-6, 1e-9), _SEEDS)
    cases = {name: replace(whole, name=name, make=make) for name, make in timeless.items()}
    known = pb.problems.references()["bratu_unforced"]
    own = {"make": known.problem, "error": _at_points, "accuracy": known.accuracy}
    return cases | {"bratu_unforced": replace(whole, name="bratu_unforced", **own)}


def evolution() -> dict[str, Case]:
    """Return the evolutions: fronts, solitons, stiff and long ones, and linear ones beside them."""
    thin = 0.001 / math.pi
    variants: dict[str, Callable[[], pb.Problem]] = {
        "burgers shifted": partial(evolving.burgers, shift=0.3),
        "burgers drifting": partial(evolving.burgers, drift=0.3),
        "burgers thin": partial(evolving.burgers, thin),
        "burgers thin shifted": partial(evolving.burgers, thin, shift=0.3),
        "burgers thin drifting": partial(evolving.burgers, thin, drift=0.5),
        "taylor_green walls": partial(evolving.taylor_green, walls=True),
    }
    return {name: _evolving(name, make) for name, make in (variants | dict(pb.problems.evolutions())).items()}


def _evolving(name: str, make: Callable[[], pb.Problem]) -> Case:
    asked = (1e-6, _SHARPER[name]) if name in _SHARPER else (1e-6,)
    return Case(name, make, lambda solution: solution.true_error(), "evolution", asked, _SEEDS)


def everyday() -> dict[str, Case]:
    """Return the everyday problems, at two tolerances where their references allow it."""

    def judged(name: str, make: Callable[[], pb.Problem]) -> Case:
        accuracy = VALUES.get(name, {}).get("accuracy", 0.0)
        asked = (1e-4, 1e-6) if accuracy <= 1e-7 else (1e-4,)
        return Case(name, make, partial(pb.problems.everyday_error, name), "", asked, accuracy=accuracy)

    return {name: judged(name, make) for name, make in pb.problems.everyday().items()}


def ill_posed() -> dict[str, Case]:
    """Return the problems that are not well posed."""
    made: Mapping[str, pb.problems.IllPosed] = pb.problems.ill_posed()
    return {
        name: Case(name, one.problem, None, "ill-posed", (1e-6,), _SEEDS, expected="ill-posed")
        for name, one in made.items()
    }
