"""Methods of a cross-validation whose networks are leading columns of one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pibls.features import BroadNetwork
from pibls.methods import PIBLS, PIELM, BayesianPIELM
from pibls.paper.folds import IndexArray
from pibls.problem import Problem

Shared = PIBLS | PIELM | BayesianPIELM
Family = Mapping[int, Shared]
"""Methods whose networks are leading columns of one another, by their places in the grid."""


def columns(method: Shared, network: BroadNetwork) -> IndexArray:
    """Return the columns of the widest network of a family that are the network of a member."""
    if not isinstance(method, PIBLS):
        return np.arange(method.nodes)
    starts = np.cumsum([network.feature_nodes, *(group.nodes for group in network.enhancement)])[:-1]
    enhanced = [np.arange(start, start + method.enhancement_nodes) for start in starts]
    return np.concatenate([np.arange(network.feature_nodes), *enhanced])


def families(methods: Sequence[Any], problem: Problem) -> tuple[list[Family], list[int]]:
    """Return the methods that share work, by family, and the places in the grid of those that do not."""
    plain = problem.is_linear and not any(s.exact for s in problem.statements)
    found: dict[Any, dict[int, Shared]] = {}
    others = []
    for index, method in enumerate(methods):
        key = _family_key(method, problem) if plain else None
        if key is None:
            others.append(index)
        else:
            found.setdefault(key, {})[index] = method
    return list(found.values()), others


def _family_key(method: Any, problem: Problem) -> Any:
    """Return the key that the networks of a family share; None for methods that go their own way."""
    if type(method) not in (PIBLS, PIELM, BayesianPIELM) or not isinstance(method.activation, str):
        return None
    measured = any(s.targets is not None for s in problem.statements)
    if isinstance(method, BayesianPIELM) and measured:
        return None
    scale = tuple(np.atleast_1d(np.asarray(method.scale, dtype=np.float64)).tolist())
    if not isinstance(method, PIBLS):
        return ("one layer", method.activation, scale)
    if method.features is not None:
        return None
    enhancement = (method.enhancement_activation, method.enhancement_scale, method.enhancement_groups)
    # Enhancement nodes are drawn for a number of feature nodes, so that families share that number.
    return ("broad", method.activation, scale, enhancement, method.feature_groups, method.feature_nodes)


def width(method: Shared) -> int:
    """Return the number by which the networks of a family differ."""
    return method.enhancement_nodes if isinstance(method, PIBLS) else method.nodes
