"""Ready problems for a page: the zoo, and files to start from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pibls.errors import InputError
from pibls.problems import about, zoo
from pibls.text.positions import suggestion


def listed() -> dict[str, Any]:
    """Return the names of all problems of the zoo, with a line about each.

    >>> listed()["zoo"][0]["name"]
    'advection'
    """
    return {"zoo": [{"name": name, "about": about(build)} for name, build in zoo().items()]}


def zoo_text(name: str) -> dict[str, str]:
    """Return a problem of the zoo as a problem file; an exact solution that no formula tells is left out.

    >>> "laplacian(u)" in zoo_text("poisson")["text"]
    True
    """
    known = zoo()
    if name not in known:
        raise InputError(f"The zoo has no problem {name[:60]!r}.{suggestion(name, known)}")
    problem, title = known[name](), name.replace("_", " ").capitalize()
    try:
        return {"text": problem.to_text(title=title)}
    except InputError:
        return {"text": replace(problem, exact=None).to_text(title=title)}
