"""The notebooks of the documentation: executed, without errors, small, and their code prints what they show."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))
LARGEST = 250_000  # bytes


def _printed(cell: dict[str, list[dict[str, str]]]) -> str:
    streams = ("".join(own["text"]) for own in cell["outputs"] if own["output_type"] == "stream")
    return "".join(streams)


def test_there_are_five_of_them_and_the_page_lists_all() -> None:
    page = (NOTEBOOKS[0].parent / "index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 5
    assert all(path.name in page for path in NOTEBOOKS)


def _marked(path: Path) -> object:
    """Return a notebook as a case; the plate of the third is solved by other tests as well."""
    return pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem == "3_stress" else [])


@pytest.mark.parametrize("path", [_marked(path) for path in NOTEBOOKS])
def test_a_notebook_is_executed_and_prints_what_it_shows(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["execution_count"], "run python docs/execute_notebooks.py"
        assert all(own["output_type"] != "error" for own in cell["outputs"])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
        assert out.getvalue() == _printed(cell)
