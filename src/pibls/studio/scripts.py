"""A problem file as a Python script and as a notebook that solve it."""

from __future__ import annotations

import json
from typing import Any

_SOLVE = """problem = read_text(PROBLEM).problem
solution = pb.solve(problem, tol={tol!r})
print(solution)
print(solution.diagnostics.message)
"""
_EIGEN = """problem = read_text(PROBLEM).problem
spectrum = pb.eigen(problem, number=6, tol={tol!r})
print(spectrum)
solution = spectrum.solutions[0]
"""
_START = "import pibls as pb\nfrom pibls.text import read_text\n"


def quoted(text: str) -> str:
    r"""Return a text as a Python string over several lines.

    >>> import ast
    >>> ast.literal_eval(quoted('a = "x"\nb = 1\\2\n'))
    'a = "x"\nb = 1\\2\n'
    """
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    escaped = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in escaped)
    return f'"""\\\n{escaped}"""' if escaped.endswith("\n") else f'"""\\\n{escaped}\n"""'


def to_script(text: str, tol: float, *, eigenvalue: bool = False) -> str:
    """Return a script that solves a problem file and draws its solution."""
    solving = (_EIGEN if eigenvalue else _SOLVE).format(tol=tol)
    return f'{_START}\nPROBLEM = {quoted(text)}\n\n{solving}solution.plot().savefig("solution.png", dpi=150)\n'


def to_notebook(text: str, tol: float, title: str, *, eigenvalue: bool = False) -> str:
    """Return a notebook that solves a problem file and draws its solution."""
    solving = (_EIGEN if eigenvalue else _SOLVE).format(tol=tol)
    codes = [f"{_START}\nPROBLEM = {quoted(text)}", solving.rstrip("\n"), "solution.plot()"]
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": f"# {title or 'A problem'}"}
    ]
    cells += [
        {"cell_type": "code", "id": f"cell{i}", "metadata": {}, "execution_count": None, "outputs": [], "source": code}
        for i, code in enumerate(codes)
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)
