"""One word for what came of a solve, the same everywhere."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

import pibls as pb
from pibls.errors import FileFormatError, InputError
from pibls.status import Status

SOURCES = sorted(path for path in Path(pb.__file__).parent.rglob("*.py") if path.name != "status.py")


@pytest.fixture(scope="module")
def fitted():
    problem = pb.problems.advection()
    return pb.PIELM(nodes=20, activation="sin").fit(problem, pb.Points.sample(problem, interior=40))


def test_a_status_is_the_string_that_it_was():
    assert [str(status) for status in Status] == ["converged", "stalled", "ill-posed", "fitted", "interrupted"]
    for status in Status:
        assert status == str(status)
        assert f"{status}" == str(status)
        assert repr(status) == repr(str(status))
        assert json.dumps({"status": status}) == f'{{"status": "{status}"}}'
        assert {str(status): 1}[status] == 1


@pytest.mark.parametrize("status", Status)
def test_each_status_says_what_it_means_and_what_to_do(status):
    for words in (status.meaning, status.remedy):
        assert words.endswith(".")
        assert 10 < len(words) < 120
    assert len({other.meaning for other in Status}) == len(Status)


def test_solutions_have_a_status(fitted, tmp_path):
    assert fitted.status is Status.FITTED
    assert replace(fitted, status="stalled").status is Status.STALLED
    assert pb.load(fitted.save(tmp_path / "run.pibls")).status is Status.FITTED


def test_no_other_word_is_taken(fitted, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"must be one of converged, .*Got 'good' instead"):
        replace(fitted, status="good")
    monkeypatch.setattr(type(fitted), "__post_init__", lambda _: None)
    path = replace(fitted, status="good").save(tmp_path / "run.pibls")
    monkeypatch.undo()
    with pytest.raises(FileFormatError, match="'good' is not a valid Status"):
        pb.load(path)


def literals(tree):
    """Return the strings of a module that are words of a status, and where they are."""
    words = {str(status) for status in Status}
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [(node.value, node.lineno) for node in nodes if isinstance(node.value, str) and node.value in words]


def test_the_words_are_written_in_one_place():
    found = {path: literals(ast.parse(path.read_text(encoding="utf-8"))) for path in SOURCES}
    assert {path: words for path, words in found.items() if words} == {}


def test_the_search_would_notice():
    assert literals(ast.parse('done = status == "converged"')) == [("converged", 1)]
