"""Make the gallery: solve every problem of the zoo, draw it, and write the pages of ``docs/gallery``.

``python docs/gallery.py`` runs everything (some minutes); ``python docs/gallery.py poisson burgers`` runs these and
keeps the stored results of all others; ``python docs/gallery.py --pages`` solves nothing and writes the pages anew.
"""

from __future__ import annotations

import inspect
import io
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pibls as pb

FOLDER = Path(__file__).parent / "gallery"
COMMAND = "python docs/gallery.py"
LARGEST = 60_000
BUDGET = 60.0  # nominal seconds; more than the default of 10, so that dear ones are shown solved

# One page per module of the zoo, in the order a reader would want.
PAGES = {
    "elliptic": "Equilibrium on rectangles",
    "shapes": "Holes, corners and curves",
    "ordinary": "Ordinary differential equations",
    "evolution": "Heat, waves and transport",
    "evolving": "Fronts, solitons and chaos",
    "nonlinear": "Steady nonlinear problems",
    "systems": "Systems of equations",
    "high_dimensional": "Many dimensions",
    "paper": "The problems of the paper",
}


def makers() -> dict[str, Callable[[], pb.Problem]]:
    """Return every problem of the gallery by name."""
    return dict(pb.problems.catalogue(exact=True))


def group(name: str) -> str:
    """Return the page that a problem is on: that of its module, or else that of what it is."""
    module = makers()[name].__module__.rpartition(".")[2]
    if module in PAGES:
        return module
    return "evolving" if name in pb.problems.evolutions() else "nonlinear"


def measure(name: str) -> dict[str, Any]:
    """Solve a problem as a user would, store its picture and return the facts."""
    problem = makers()[name]()
    pb.solve(pb.problems.advection())  # so that the first of them does not pay for what is imported at first use
    started = time.process_time()
    solution = pb.solve(problem, budget=BUDGET)
    seconds = time.process_time() - started
    (FOLDER / "images").mkdir(parents=True, exist_ok=True)
    (FOLDER / "images" / f"{name}.png").write_bytes(picture(solution))
    return {
        "status": solution.status,
        "error": float(f"{solution.true_error():.1e}"),
        "estimate": float(f"{solution.error_estimate:.1e}"),
        "seconds": round(seconds, 2),
        "nodes": solution.diagnostics.nodes,
    }


def picture(solution: pb.Solution) -> bytes:
    """Return the picture of a solution as a PNG of at most 60 kB."""
    from matplotlib import pyplot as plt
    from PIL import Image

    figure = solution.plot()
    for dpi, colours in ((72, 256), (60, 256), (50, 256), (40, 256), (40, 64), (40, 24)):
        raw, small = io.BytesIO(), io.BytesIO()
        figure.savefig(raw, dpi=dpi, format="png")
        Image.open(raw).convert("RGB").quantize(colours).save(small, format="png", optimize=True)
        if small.tell() <= LARGEST:
            break
    plt.close(figure)
    return small.getvalue()


def stored() -> dict[str, dict[str, Any]]:
    """Return the results of the last run."""
    path = FOLDER / "results.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def pages(results: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return every page of the gallery by its file name."""
    listed: dict[str, list[str]] = {page: [] for page in PAGES}
    for name in makers():
        if name in results:
            listed[group(name)].append(name)
    found = {f"{page}.md": _page(page, names, results) for page, names in listed.items()}
    return {"index.md": _index(listed, results), **found}


def _index(listed: dict[str, list[str]], results: dict[str, dict[str, Any]]) -> str:
    met = sum(facts["status"] == "converged" for facts in results.values())
    head = f"""# Gallery

Every problem of the zoo, solved by `pb.solve(problem, budget={BUDGET:g})` at the default tolerance of 1e-6 with nothing
said but the equation: {met} of {len(results)} converge. Each picture leads to the equation, the measured error, the
estimate, and the Python and the problem file that made it.

Made by `{COMMAND}`. Each row is the latest run of its problem. Times are processor seconds on one core of a shared
machine. Errors are relative L2 errors at points that the solve never saw.
"""
    parts = [head]
    for page, names in listed.items():
        cards = "\n".join(_card(page, name, results[name]) for name in names)
        parts.append(f'## {PAGES[page]}\n\n```{{raw}} html\n<div class="gallery">\n{cards}\n</div>\n```\n')
    tree = "\n".join(PAGES)
    return "\n".join([*parts, f"```{{toctree}}\n:hidden:\n\n{tree}\n```\n"])


def _card(page: str, name: str, facts: dict[str, Any]) -> str:
    image = f'<img src="../_images/{name}.png" alt="Solution of {name}" loading="lazy">'
    caption = f"<b>{name}</b><br>{_error(facts)}, {facts['seconds']:.1f} s"
    return f'<a href="{page}.html#{name.replace("_", "-")}">{image}<span>{caption}</span></a>'


def _error(facts: dict[str, Any]) -> str:
    return f"error {facts['error']:.0e}" if facts["status"] == "converged" else f"stalled, error {facts['error']:.0e}"


def _page(page: str, names: list[str], results: dict[str, dict[str, Any]]) -> str:
    head = f"# {PAGES[page]}\n\nMade by `{COMMAND}`; see the [gallery](index.md) for what the numbers mean.\n"
    return "\n".join([head, *(_section(name, results[name]) for name in names)])


def _section(name: str, facts: dict[str, Any]) -> str:
    make = makers()[name]
    problem = make()
    source = f"../../src/{make.__module__.replace('.', '/')}.py"
    return f"""## {name}

{_words(make)}

{_statements(problem)}

```{{image}} images/{name}.png
:alt: Solution of {name}
```

| status | true error | estimate | seconds | nodes |
|---|---|---|---|---|
| {facts["status"]} | {facts["error"]:.1e} | {facts["estimate"]:.1e} | {facts["seconds"]:.1f} | {facts["nodes"]} |

```python
solution = pb.solve(pb.problems.{name}(), budget={BUDGET:g})
```

<details><summary>How the problem is written in Python</summary>

```{{literalinclude}} {source}
:pyobject: {make.__name__}
```

</details>
{_file(problem)}"""


def _statements(problem: pb.Problem) -> str:
    """Return the equations and conditions as a table: where each holds, and the formula."""
    rows = problem.latex().split("\n")[1:-1]
    pairs = [row.removesuffix(r" \\").split(r" & \quad ") for row in rows]
    body = "\n".join(f"| {_place(right)} | ${_formula(left)}$ |" for left, right in pairs)
    return f"| where | what |\n|---|---|\n{body}"


def _formula(latex: str) -> str:
    # Numbers as long as doubles are hard to read, and a bar would end the cell.
    short = re.sub(r"\d+\.\d{7,}", lambda found: f"{float(found[0]):.6g}", latex)
    return short.replace("|", r"\vert ")


def _place(latex: str) -> str:
    words = re.sub(r"\\text\{((?:[^{}]|\{[^{}]*\})*)\}", r"\1", latex).replace("\\_", "_").strip()
    return re.sub(r"([*_|])", r"\\\1", re.sub(r"\s+", " ", words))


def _words(make: Callable[[], pb.Problem]) -> str:
    """Return what the docstring says of a problem besides its equation, which stands in the page itself."""
    paragraphs = inspect.cleandoc(make.__doc__ or "").split("\n\n")
    after = [i for i, text in enumerate(paragraphs) if re.match(r"\w+\n-+\n", text)]
    told = paragraphs[1 : after[0] if after else None] or [paragraphs[0].removeprefix("Return ")]
    text = "\n\n".join(told).replace("``", "`")
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    # Outside of code, Markdown would take these for emphasis.
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([*_])", r"\\\1", piece) for piece in re.split(r"(`.*?`)", text)
    )


def _file(problem: pb.Problem) -> str:
    try:
        text = _without_functions(problem).to_text()
    except pb.PiblsError as error:
        return f"\nThere is no problem file: {str(error).split('. ')[0][:1].lower()}{str(error).split('. ')[0][1:]}.\n"
    return f"\n<details><summary>The same as a problem file</summary>\n\n```toml\n{text}```\n\n</details>\n"


def _without_functions(problem: pb.Problem) -> pb.Problem:
    """Return the problem without an exact solution that only exists in Python."""
    known = problem.exact is not None and not any(value.has(*_calls(value)) for value in dict(problem.exact).values())
    return problem if known else pb.Problem(problem.equations, problem.domain, problem.conditions)


def _calls(expression: Any) -> tuple[Any, ...]:
    from sympy.core.function import AppliedUndef

    return tuple(expression.atoms(AppliedUndef)) or (float("nan"),)


def main(arguments: list[str]) -> None:
    """Run what was asked for and write the pages."""
    results = stored()
    for name in [] if arguments == ["--pages"] else arguments or list(makers()):
        results[name] = measure(name)
        print(name, results[name], flush=True)
        ordered = {name: results[name] for name in makers() if name in results}
        (FOLDER / "results.json").write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    for file, text in pages(stored()).items():
        (FOLDER / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
