"""Conditions that are attached to edges of a drawing: whichever held there before gives way."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from pibls.studio.shape_edits import free_name, leaves
from pibls.studio.text_edits import with_table, with_value, without
from pibls.text.positions import Path

NEEDS: Mapping[str, Mapping[str, Any]] = {
    "dirichlet": {"value": "0"},
    "neumann": {"value": "0"},
    "convection": {"h": "1", "ambient": "0"},
    "robin": {"alpha": "1", "beta": "1", "value": "0"},
    "condition": {"equation": "u = 0"},
    "initial": {"value": "0"},
    "mean": {"value": "0"},
}
"""The entries that a new condition of a kind has."""

ON_BOUNDARY = ("dirichlet", "neumann", "convection", "robin", "condition")
"""The kinds that hold on parts of the boundary."""


def flux_of(field: str) -> dict[str, Any]:
    """Return the condition that nothing of a field flows through an edge, or that no force acts there in its direction.

    >>> flux_of("u")
    {'kind': 'condition', 'equation': 'flux(u) = 0'}
    """
    return {"kind": "condition", "equation": f"flux({field}) = 0"}


def named_part(text: str, path: Path, part: str, name: str) -> tuple[str, str]:
    """Return the text in which the shape of a part has a name, and the name of the part in conditions."""
    shape: Any = tomllib.loads(text)
    for key in path:
        shape = shape[key]
    own = shape.get("name")
    if path == ("domain",) or own or path[0] != "domain":
        return text, name
    taken = {str(other.get("name", "")) for _, other in leaves(tomllib.loads(text)["domain"])}
    own = free_name("part", taken)
    return with_value(text, (*path, "name"), own), own if part == "boundary" else f"{own}.{part}"


def with_another(text: str, entries: Mapping[str, Any]) -> str:
    """Return the text with one more condition."""
    return with_table(text, ("conditions",), entries, several=True)


def with_condition(text: str, entries: Mapping[str, Any], name: str, edges: Sequence[str], field: str) -> str:
    r"""Return the text with a new condition on an edge, where the others for the same field no longer hold.

    >>> text = '[[conditions]]\nkind = "dirichlet"\nvalue = 0\n'
    >>> print(with_condition(text, {"kind": "neumann", "value": 1}, "top", ["left", "top"], "u"))
    [[conditions]]
    kind = "dirichlet"
    value = 0
    on = "left"
    <BLANKLINE>
    [[conditions]]
    kind = "neumann"
    value = 1
    on = "top"
    <BLANKLINE>
    """
    text = _yielded(text, name, edges, field, None)
    return with_another(text, {**entries, "on": name})


def attached(text: str, number: int, name: str, edges: Sequence[str], field: str) -> str:
    r"""Return the text in which a condition holds on an edge as well, and no other one does.

    >>> text = '[[conditions]]\nkind = "dirichlet"\non = "left"\n\n[[conditions]]\nkind = "neumann"\n'
    >>> text += 'on = ["top", "right"]\n'
    >>> print(attached(text, 0, "top", ["left", "top", "right"], "u"))
    [[conditions]]
    kind = "dirichlet"
    on = ["left", "top"]
    <BLANKLINE>
    [[conditions]]
    kind = "neumann"
    on = "right"
    <BLANKLINE>
    """
    own = tomllib.loads(text)["conditions"][number]
    listed, field = _listed(own), _about(own, field)
    if name not in listed:
        text = with_value(text, ("conditions", number, "on"), _short([*listed, name]))
    return _yielded(text, name, edges, field, number)


def _yielded(text: str, name: str, edges: Sequence[str], field: str, kept: int | None) -> str:
    """Take an edge from all conditions on a field but one; those that hold nowhere else go."""
    conditions = tomllib.loads(text).get("conditions", [])
    for number in reversed(range(len(conditions))):
        own = conditions[number]
        about = _about(own, field)
        if number == kept or own.get("kind") not in ON_BOUNDARY or about != field or {"at", "where"} & set(own):
            continue
        listed = _listed(own) or list(edges)
        if name not in listed:
            continue
        left = [edge for edge in listed if edge != name]
        path = ("conditions", number)
        text = with_value(text, (*path, "on"), _short(left)) if left else without(text, path)
    return text


def _about(condition: Mapping[str, Any], field: str) -> str:
    """Return which field a condition is about, the given one if it does not say."""
    flux = re.match(r"\s*flux\((\w+)\)", str(condition.get("equation", "")))
    return flux.group(1) if flux else str(condition.get("u", field))


def _listed(condition: Mapping[str, Any]) -> list[str]:
    on = condition.get("on", [])
    return [on] if isinstance(on, str) else list(on)


def _short(names: Sequence[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)
