"""Plain data as TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["write_table", "write_value"]


def write_value(value: Any) -> str:
    """Return a string, number, list or mapping as it stands after a key, on one line.

    >>> write_value({"shape": "disk", "center": [0.0, 0.5], "radius": 2})
    '{shape = "disk", center = [0, 0.5], radius = 2}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {write_value(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(write_value, value)) + "]"
    whole = math.isfinite(value) and value == int(value) and abs(value) < 1e15
    return str(int(value)) if whole else repr(float(value))


def write_table(entries: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table: lists of lists and of tables, and equations, one entry per line.

    >>> write_table({"kind": "mean", "points": [[0, 1], [2, 3]]})
    ['kind = "mean"', 'points = [', '  [0, 1],', '  [2, 3],', ']']
    """
    lines = []
    for key, value in entries.items():
        if isinstance(value, list) and (key == "equations" or (value and isinstance(value[0], list | dict))):
            lines += [f"{key} = [", *(f"  {write_value(entry)}," for entry in value), "]"]
        else:
            lines.append(f"{key} = {write_value(value)}")
    return lines
