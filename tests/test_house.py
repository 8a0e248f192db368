"""The size of the house does not grow: figures that were reached are held."""

import ast

from benchmarks import house


def test_no_figure_rises_above_the_kept_one():
    found, kept = house.found(), house.kept()
    assert set(found) == set(kept)
    risen = {name: (kept[name], len(found[name])) for name in found if len(found[name]) > kept[name]}
    assert not risen, f"lower them, or say why and run python -m benchmarks.house --reset: {risen}"


def test_constants_are_numbers_with_names_and_fields_of_settings():
    source = """
_SHARE, MOST = 0.1, 3  # two
_PAIR = (1, 2)
_WORDS = {"a": "b"}
_FLAG = True
lower = 4
_OF: float = -1e-3
class LoopSettings:
    share: float = 0.5
    name: str = "x"
class Other:
    count: int = 0
"""
    names = list(house.constants(ast.parse(source)))
    assert names == ["_SHARE", "MOST", "_PAIR", "_OF", "LoopSettings.share"]


def test_the_walk_of_a_solve_is_that_of_the_library_alone():
    walked = house.walked()
    assert any(entry.startswith("tuning/") or "solve" in entry for entry in walked)
    assert not any("site-packages" in entry for entry in walked)
    assert walked == house.walked()
