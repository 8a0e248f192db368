"""Other names of unknowns in a problem file, which its formulas follow."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from pibls.studio.condition_edits import NEEDS
from pibls.studio.text_edits import with_value
from pibls.text.positions import Path
from pibls.text.vocabulary import FUNCTIONS, OPERATORS

_WORD = re.compile(r"(?<![\w.])[A-Za-z]\w*")


def with_unknowns(text: str, key: str, names: Sequence[str]) -> str:
    r"""Return the text with other unknowns: a new name replaces an old one in formulas, and conditions keep theirs.

    >>> text = 'unknowns = ["u"]\nequations = ["-laplacian(u) + u_x = sin(u)"]\n'
    >>> text += '[[conditions]]\nkind = "dirichlet"\nvalue = 0\n'
    >>> print(with_unknowns(text, "unknowns", ["T"]).splitlines()[1])
    equations = ["-laplacian(T) + T_x = sin(T)"]
    >>> print(with_unknowns(text, "unknowns", ["u", "p"]).splitlines()[-1])
    u = "u"
    """
    data = tomllib.loads(text)
    given = data.get(key, ["u"])
    old, conditions = [given] if isinstance(given, str) else list(given), data.get("conditions", [])
    text = with_value(text, (key,), list(names))
    gone, new = ([name for name in one if name not in other] for one, other in ((old, names), (names, old)))
    if len(old) == 1 < len(names) and not gone:
        for number, own in enumerate(conditions):
            if own.get("kind") in NEEDS and not {"u", "equation"} & set(own):
                text = with_value(text, ("conditions", number, "u"), old[0])
    if len(gone) == len(new) == 1 and len(old) == len(names) and _is_free(data, key, new[0]):
        for path, formula in _formulas(data):
            text = with_value(text, path, _renamed(formula, gone[0], new[0], data.get("parameters", {})))
    return text


def _is_free(data: Any, key: str, name: str) -> bool:
    """Tell whether a word is a name that stands for nothing else in the problem."""
    rest = {own: value for own, value in data.items() if own not in (key, "title")}
    usual = {"x", "y", "z", "t", *FUNCTIONS, *OPERATORS}
    return bool(_WORD.fullmatch(name)) and name not in usual and name not in _WORD.findall(str(rest))


def _formulas(data: Any) -> list[tuple[Path, str]]:
    """Return the formulas of a problem that may have unknowns in them, each with its path."""
    found = data.get("equations", [])
    listed = enumerate([] if isinstance(found, str) else found)
    paths: list[tuple[Path, Any]] = [(("equations", number), own) for number, own in listed]
    paths += [(("equations",), found)] if isinstance(found, str) else []
    for number, table in enumerate(data.get("conditions", [])):
        entries = (entry for entry in table.items() if entry[0] not in ("kind", "on", "file", "where"))
        paths += [(("conditions", number, key), own) for key, own in entries]
    return [(path, own) for path, own in paths if isinstance(own, str)]


def _renamed(formula: str, old: str, new: str, parameters: Any) -> str:
    """Return a formula with another name for an unknown and its derivatives."""

    def other(found: re.Match[str]) -> str:
        word = found.group()
        is_own = word not in parameters and (word == old or word.startswith(f"{old}_"))
        return new + word[len(old) :] if is_own else word

    return _WORD.sub(other, formula)
