"""The problems that the library is measured by, in sets.

Nothing may be chosen by the held-out, fresh and unseen sets, nor by those whose names end in ``aside``: they are there
to be measured. Each of their problems is ill-posed, or has a closed form, a series, or a reference by SciPy;
``tests/test_unseen.py`` and ``tests/test_strangers.py`` make sure that references fulfil the equations.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from benchmarks.sets.case import Case, exact_error

__all__ = ["SETS", "Case", "cases"]

# Where the lists are; the most informative sets come first.
_LISTS = {
    "linear": ("zoo.linear",),
    "nonlinear": ("zoo.nonlinear",),
    "evolution": ("zoo.evolution",),
    "everyday": ("zoo.everyday",),
    "held_out": ("held_out.held_out",),
    "ill_posed": ("zoo.ill_posed",),
    "inverse": ("unknowns.unknowns",),
    "unseen": (
        *("unseen_shapes.shapes", "unseen_media.media", "unseen_courses.courses"),
        *("unseen_fields.fields", "unseen_doubts.doubts"),
    ),
    "families": ("families.families",),
    "fresh": ("fresh.fresh",),
    "bodies": ("bodies.bodies",),
    "words": ("words_open.words_open", "words_aside.words_aside"),
    "scales": ("scales_open.scales_open",),
    "scales_aside": ("scales_aside.scales_aside",),
    "doubts": ("doubts_open.doubts_open", "doubts_open.doubts_open_alike"),
    "doubts_aside": ("doubts_aside.doubts_aside", "doubts_aside.doubts_aside_alike"),
    "many_coordinates": ("many_coordinates.many_coordinates",),
    "many_coordinates_aside": ("many_coordinates.many_coordinates_aside",),
    "strangers": ("strangers.strangers",),
    "strangers_aside": ("strangers.strangers_aside",),
    "forgotten": ("forgotten.forgotten",),
    "forgotten_aside": ("forgotten.forgotten_aside",),
    "lookalikes": ("forgotten.lookalikes",),
    "lookalikes_aside": ("forgotten.lookalikes_aside",),
    "slight": ("slight.slight",),
}
SETS = tuple(_LISTS)


@cache
def cases(name: str) -> dict[str, Case]:
    """Return the problems of a set by name.

    >>> cases("ill_posed")["ode_one_condition"].expected
    'ill-posed'
    """
    found: dict[str, Case] = {}
    for place in _LISTS[name]:
        module, _, attribute = place.partition(".")
        listed = getattr(import_module(f"benchmarks.sets.{module}"), attribute)
        for of, one in (listed() if callable(listed) else listed).items():
            found[of] = one if isinstance(one, Case) else Case(of, one, exact_error)
    return found
