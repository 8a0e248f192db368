"""Problems and networks as plain JSON records and arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, IntArray
from pibls.errors import FileFormatError, GeometryError
from pibls.features import BroadNetwork, EnhancementGroup, FeatureGroup
from pibls.features.deep import DeepNetwork
from pibls.features.reduction import Reduction
from pibls.geometry import Domain
from pibls.problem import AnyCondition, Condition, Interface, Mean, Observation, Periodic, Problem
from pibls.problem.conditions import INITIAL
from pibls.problem.domain import is_part
from pibls.problem.encoding import decode, encode
from pibls.problem.evaluate import compile_function
from pibls.problem.measured import Written
from pibls.problem.unknown_numbers import check_name
from pibls.solution.celled import CellNetwork
from pibls.solution.evolved import EvolvedNetwork
from pibls.solution.evolved_cells import EvolvedCells, EvolvedLegs

Arrays = dict[str, FloatArray]
Functions = Mapping[str, Callable[..., Any]]  # data functions by name
RicherNetwork = BroadNetwork | EvolvedNetwork | CellNetwork | EvolvedCells | EvolvedLegs
Network = RicherNetwork | DeepNetwork
_MOST_COMBINED = 50
_SIDES = ("features", "enhancement")
_PATH = ("transform", "breaks", "coefficients")
_CELLS = ("tree", "cuts", "centers", "halves", "weights", "samples", "owners")


def network_record(network: Network, arrays: Arrays) -> dict[str, Any]:
    """Return the structure of a network, and put its arrays into ``arrays``."""
    if isinstance(network, EvolvedNetwork):
        arrays.update({name: getattr(network, name) for name in _PATH})
        space = None if network.space is None else network_record(network.space, arrays)
        return {"space": space} if network.frame is None else {"space": space, "frame": list(network.frame)}
    if isinstance(network, EvolvedCells):
        arrays["breaks"] = network.breaks
        return {"evolved": network_record(network.space, arrays), "fields": network.size}
    if isinstance(network, EvolvedLegs):
        records = []
        for number, leg in enumerate(network.legs):
            own: Arrays = {}
            records.append(network_record(leg, own))
            arrays.update({f"leg_{number}_{name}": array for name, array in own.items()})
        return {"legs": records}
    if isinstance(network, CellNetwork):
        # Numbers of boxes and parts are stored as floats like everything else, which hold them exactly.
        arrays.update({f"cell_{name}": np.asarray(getattr(network, name), dtype=np.float64) for name in _CELLS})
        cells: dict[str, Any] = {"cells": network_record(network.reference, arrays)}
        if network.branch is not None:
            arrays["cell_kinds"] = network.kinds.astype(np.float64)
            names = [symbol.name for symbol in network.branch.coordinates]
            cells["kinds"] = {"coordinates": names, "branch": encode(network.branch.expression)}
        return cells
    arrays["center"] = np.asarray(network.center)
    record: dict[str, Any] = {}
    for side in _SIDES if isinstance(network, BroadNetwork) else ("layers",):
        groups = getattr(network, side)
        record[side] = [group.activation.name for group in groups]
        for i, group in enumerate(groups):
            arrays[f"{side}_{i}_weights"] = np.asarray(group.weights)
            arrays[f"{side}_{i}_bias"] = np.asarray(group.bias)
    if isinstance(network, BroadNetwork) and network.reduction is not None:
        record["degrees"] = list(network.reduction.degrees)
        arrays["reduction_weights"] = np.asarray(network.reduction.weights)
        arrays["reduction_half_widths"] = np.asarray(network.reduction.half_widths)
    return record


def _cells_from(record: Mapping[str, Any], arrays: Mapping[str, FloatArray], functions: Functions) -> CellNetwork:
    reference = network_from(record["cells"], arrays)
    if not isinstance(reference, BroadNetwork):
        raise ValueError("the network of the cells is not a broad one")
    own: dict[str, Any] = {name: arrays[f"cell_{name}"] for name in _CELLS}
    network = CellNetwork(reference, **own | {name: _whole(own[name]) for name in ("tree", "owners")})
    if "kinds" not in record:
        return network.checked()
    symbols = _symbols(record["kinds"]["coordinates"])
    branch = compile_function(decode(record["kinds"]["branch"], symbols, functions), symbols)
    return replace(network, kinds=_whole(arrays["cell_kinds"]), branch=branch).checked()


def _evolved_from(record: Mapping[str, Any], arrays: Mapping[str, FloatArray], functions: Functions) -> EvolvedCells:
    return EvolvedCells(_cells_from(record["evolved"], arrays, functions), arrays["breaks"], int(record["fields"]))


def _of_leg(number: int, arrays: Mapping[str, FloatArray]) -> Arrays:
    start = f"leg_{number}_"
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _symbols(names: Any) -> tuple[sp.Symbol, ...]:
    return tuple(sp.Symbol(check_name(name, "coordinates"), real=True) for name in names)


def _whole(array: FloatArray) -> IntArray:
    """Return whole numbers that were stored as floats."""
    if not (np.abs(array) < 2**53).all() or (array != np.round(array)).any():
        raise ValueError("the numbers of boxes and parts are not whole")
    return array.astype(np.int64)


def network_from(
    record: Mapping[str, Any], arrays: Mapping[str, FloatArray], functions: Functions = MappingProxyType({})
) -> Network:
    """Rebuild a network from :func:`network_record`."""
    if "space" in record:
        space = None if record["space"] is None else network_from(record["space"], arrays)
        if not isinstance(space, BroadNetwork | None):
            raise ValueError("the features in space are not a broad network")
        frame: Any = tuple(map(float, record["frame"])) if "frame" in record else None
        return EvolvedNetwork(space, frame=frame, **{name: arrays[name] for name in _PATH})
    if "evolved" in record:
        return _evolved_from(record, arrays, functions)
    if "legs" in record:
        legs = enumerate(record["legs"])
        return EvolvedLegs(tuple(_evolved_from(own, _of_leg(number, arrays), functions) for number, own in legs))
    if "cells" in record:
        return _cells_from(record, arrays, functions)

    def groups(side: str, first: Callable[..., Any], rest: Callable[..., Any]) -> tuple[Any, ...]:
        kinds = [first, *[rest] * len(record[side])]
        names = enumerate(record[side])
        return tuple(kinds[i](name, arrays[f"{side}_{i}_weights"], arrays[f"{side}_{i}_bias"]) for i, name in names)

    if "layers" in record:
        return DeepNetwork(arrays["center"], groups("layers", FeatureGroup, EnhancementGroup))
    features = groups("features", FeatureGroup, FeatureGroup)
    enhancement = groups("enhancement", EnhancementGroup, EnhancementGroup)
    reduction = None
    if "degrees" in record:
        own = arrays["reduction_weights"], arrays["reduction_half_widths"]
        reduction = Reduction(*own, tuple(int(degree) for degree in record["degrees"]))
    return BroadNetwork(arrays["center"], features, enhancement, reduction)


def problem_record(problem: Problem, arrays: Arrays) -> dict[str, Any]:
    """Return a problem as a record; points of conditions go into ``arrays``."""
    exact = None if problem.exact is None else {name: encode(value) for name, value in problem.exact.items()}
    truth = {name: encode(sp.sympify(value, strict=True)) for name, value in (problem.truth or {}).items()}
    return {
        "coordinates": [symbol.name for symbol in problem.domain.coordinates],
        "domain": problem.domain.to_dict(_encode_shape),
        "equations": [encode(equation) for equation in problem.equations],
        "conditions": [_condition_record(c, f"condition_{i}", arrays) for i, c in enumerate(problem.conditions)],
        "exact": exact,
    } | ({} if problem.truth is None else {"truth": truth})


def _condition_record(condition: AnyCondition, key: str, arrays: Arrays) -> dict[str, Any]:
    record: dict[str, Any] = {"kind": condition.label, "weight": float(condition.weight), "exact": condition.exact}
    if isinstance(condition, Condition):
        record |= {"equation": encode(condition.equation), "on": _place_record(condition.on, key, arrays)}
    elif isinstance(condition, Periodic):
        order = condition.derivatives
        record |= {"u": encode(condition.u), "coordinate": condition.coordinate.name, "derivatives": order}
    elif isinstance(condition, Mean):
        record |= {"u": encode(condition.u), "value": condition.value}
    elif isinstance(condition, Interface):
        shape = isinstance(condition.on, Domain)
        where = {"shape": condition.on.to_dict(_encode_shape)} if shape else {"condition": encode(condition.on)}
        record |= {"equations": [encode(e) for e in condition.equations], "on": where}
    else:
        record |= _observation_record(condition, key, arrays)
    return record


_MEASURED = ("points", "values", "noise", "times")


def _observation_record(condition: Observation, key: str, arrays: Arrays) -> dict[str, Any]:
    given = {name: getattr(condition, name) for name in _MEASURED}
    arrays |= {f"{key}_{name}": array for name, array in given.items() if array is not None}
    record: dict[str, Any] = {"u": encode(condition.u), "loss": condition.loss}
    if condition.columns is not None:
        record["columns"] = list(condition.columns)
    if condition.regions is not None:
        distinct = list(dict.fromkeys(condition.regions))
        record["regions"] = [_region_record(region) for region in distinct]
        record["region_of"] = [distinct.index(region) for region in condition.regions]
    return record


def _region_record(region: Any) -> dict[str, Any]:
    if is_part(region):
        return {"domain": region.domain.to_dict(_encode_shape), "part": region.name}
    return {"domain": region.to_dict(_encode_shape)}


def _place_record(on: Any, key: str, arrays: Arrays) -> Any:
    if on is None:
        return None
    if on is INITIAL:
        return {"initial": True}
    if isinstance(on, np.ndarray):
        arrays[f"{key}_on"] = on
        return {"points": f"{key}_on"}
    return _region_record(on)


def check_combinations(count: int) -> None:
    """Refuse so many combinations of shapes that finding their boundaries takes long."""
    if count > _MOST_COMBINED:
        raise FileFormatError(
            f"The problem combines {count} shapes, and files hold up to {_MOST_COMBINED}. Make one Outline of their "
            "rings."
        )


def combinations(record: Any) -> int:
    """Return how many combinations of shapes the record of a domain has.

    >>> combinations({"shape": "Combination", "first": {}, "second": {}})
    1
    """
    todo, count = [record], 0
    while todo:
        entry = todo.pop()
        count += isinstance(entry, dict) and entry.get("shape") == "Combination"
        below = entry.values() if isinstance(entry, dict) else entry
        todo += [value for value in below if isinstance(value, dict | list)]
    return count


@dataclass(eq=False)
class _ProblemReader:
    """Reads the problem of a file, equal domains of it once."""

    symbols: tuple[sp.Symbol, ...]
    arrays: Mapping[str, FloatArray]
    functions: Functions
    written: Written
    known: dict[str, Domain] = field(default_factory=dict)
    combined: int = 0

    def expression(self, tree: Any) -> Any:
        """Return an expression, and add it to the size of the whole problem."""
        found = decode(tree, self.symbols, self.functions)
        self.written.add(found)
        return found

    def by_name(self, trees: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return expressions by name, if there are any."""
        return None if trees is None else {name: self.expression(tree) for name, tree in trees.items()}

    def domain(self, record: Any) -> Domain:
        """Return the domain of a record."""
        key = json.dumps(record, sort_keys=True)
        if key not in self.known:
            self.combined += combinations(record)
            check_combinations(self.combined)
            self.known[key] = Domain.from_dict(record, self.symbols, _decode_shape)
        return self.known[key]

    def condition(self, record: Mapping[str, Any], key: str) -> AnyCondition:
        """Return a condition, whose arrays have a key."""
        kind, settings = record["kind"], {"weight": record["weight"], "exact": record["exact"]}
        if kind == "Periodic":
            named = {symbol.name: symbol for symbol in self.symbols}
            coordinate = named[record["coordinate"]]
            return Periodic(self.expression(record["u"]), coordinate, record["derivatives"], **settings)
        if kind == "Mean":
            return Mean(self.expression(record["u"]), record["value"], **settings)
        if kind == "Interface":
            where = record["on"]
            on = self.domain(where["shape"]) if "shape" in where else self.expression(where["condition"])
            equations = [self.expression(tree) for tree in record["equations"]]
            return Interface(equations, on, weight=record["weight"])
        if kind == "Observation":
            return self._observation(record, key, settings)
        place = self._place(record["on"])
        return Condition(self.expression(record["equation"]), place, label=str(kind), **settings)

    def _observation(self, record: Mapping[str, Any], key: str, settings: dict[str, Any]) -> Observation:
        points, values, noise, times = (self.arrays.get(f"{key}_{name}") for name in _MEASURED)
        if values is None or (points is None and "regions" not in record):
            raise FileFormatError("The file lacks the points of an observation; it was changed after it was saved.")
        settings |= {"loss": record.get("loss", "squares"), "times": times}
        if "columns" in record:
            settings["columns"] = tuple(map(str, record["columns"]))
        if "regions" in record:
            regions = [self._place(region) for region in record["regions"]]
            settings["regions"] = [regions[number] for number in record["region_of"]]
        return Observation(self.expression(record["u"]), points, values, noise, **settings)

    def _place(self, record: Any) -> Any:
        if record is None:
            return None
        if "initial" in record:
            return INITIAL
        if "points" in record:
            return self.arrays[record["points"]]
        domain = self.domain(record["domain"])
        return _part(domain, record["part"]) if "part" in record else domain


def problem_from(record: Mapping[str, Any], arrays: Mapping[str, FloatArray], functions: Functions) -> Problem:
    """Rebuild a problem from :func:`problem_record`."""
    symbols = _symbols(record["coordinates"])
    reader = _ProblemReader(symbols, arrays, functions, Written(len(symbols)))
    domain = reader.domain(record["domain"])
    conditions = [reader.condition(own, f"condition_{i}") for i, own in enumerate(record["conditions"])]
    exact, truth = reader.by_name(record["exact"]), reader.by_name(record.get("truth"))
    return Problem([reader.expression(tree) for tree in record["equations"]], domain, conditions, exact, truth)


def _encode_shape(expression: sp.Expr) -> dict[str, Any]:
    """Return the radius of a star with its angle, which is a symbol of its own and no coordinate."""
    symbols = sorted(expression.free_symbols, key=str)
    return {"symbols": [[s.name, bool(s.is_real)] for s in symbols], "expression": encode(expression)}


def _decode_shape(record: Any) -> Any:
    symbols = tuple(
        sp.Symbol(check_name(name, "shape"), real=True if real else None) for name, real in record["symbols"]
    )
    return decode(record["expression"], symbols)


def _part(domain: Domain, name: str) -> Any:
    """Find a part by its name; a part cut by a predicate keeps the name but cannot be sampled."""
    base, _, predicate = name.partition(".where(")
    parts: dict[str, Any] = dict(domain.parts)
    for part in (domain.boundary, domain.initial, domain.final):
        if part is not None:
            parts[part.name] = part
    result = None
    for piece in base.split("|"):
        if piece not in parts:
            raise FileFormatError(f"The stored boundary part {name!r} is not a part of {domain}.")
        result = parts[piece] if result is None else result | parts[piece]
    return result.where(_LostPredicate(name)) if predicate and result is not None else result


class _LostPredicate:
    """Stands for a predicate that was a Python function and is not stored."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = name.partition(".where(")[2].rstrip(")")

    def __call__(self, _: FloatArray) -> Any:
        raise GeometryError(
            f"the predicate of {self.name} was a Python function, which a file cannot hold; build the condition anew"
        )
