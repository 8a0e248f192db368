"""The report of a study: published beside measured numbers, on one page that needs no network."""

from __future__ import annotations

import base64
import math
import os
import platform
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pibls.paper import coverage, grids
from pibls.paper.architectures import ARCHITECTURES
from pibls.paper.cells import versions
from pibls.paper.conclusions import NAMED, claims, standings
from pibls.paper.figures import ERROR_FIGURES, SOLUTION_FIGURES, draw_all
from pibls.paper.files import write_files
from pibls.paper.findings import Findings
from pibls.paper.ledger import PROBLEMS, Ledger, Record, Summary, held, label, own_numbers, summarise, tally
from pibls.paper.made import processor
from pibls.paper.published import METHODS
from pibls.paper.selecting import FOLDS, LENGTHS
from pibls.paper.stored import stored
from pibls.runtime import available_cores, available_memory, format_bytes
from pibls.writing import replaced

# How a quantity is written as measured, and as published; others in three digits, and in the paper's five.
_SHOWN = {"parameters": ".0f", "reduction": ".2f", "factor": ".2f"}
_PRINTED = {**_SHOWN, "seconds": ".4f", "seconds per point": ".2e"}


def write_report(out: str | Path, profile: str = "quick") -> Path:
    """Write the report of a stored study: page, figures and files of numbers.

    Parameters
    ----------
    out
        Folder of the study. The page goes to ``report.html``, figures to ``figures``, numbers to ``csv``.
    profile
        Profile whose cells are told: ``"quick"`` or ``"full"``. What it does not run is shown from the cells that
        come with the library.

    Returns
    -------
    Path
        The page.
    """
    folder = Path(out)
    found = Findings.of(folder, profile)
    figures = draw_all(found, folder / "figures")
    _write_files(found, folder)
    page = render(found, figures)
    return replaced(folder / "report.html", lambda place: place.write_text(page, encoding="utf-8"))


def write_numbers(out: str | Path, profile: str = "quick") -> tuple[Path, ...]:
    """Write only the files of numbers of a stored study; see :func:`write_report`."""
    return _write_files(Findings.of(Path(out), profile), Path(out))


def _write_files(found: Findings, folder: Path) -> tuple[Path, ...]:
    compared = [*found.accuracy, *found.parameters]
    return write_files(folder / "csv", found.book, compared, found.times, own=found.own)


def render(found: Findings, figures: Mapping[str, bytes]) -> str:
    """Return the page, with the figures (SVG, by name) inside of it."""
    page = Environment(
        loader=PackageLoader("pibls.paper", "."),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.do"],
    )
    named = (each, held, label, listed, own_numbers, printed, shown, spans, spread_words, summarise, tally)
    page.filters |= {function.__name__: function for function in named}
    text = page.get_template("report.html.j2").render(
        found=found,
        figures={name: base64.b64encode(svg).decode("ascii") for name, svg in figures.items()},
        architectures=ARCHITECTURES,
        error_figures=ERROR_FIGURES,
        solution_figures=SOLUTION_FIGURES,
        problems=PROBLEMS,
        methods=METHODS,
        grids=grids,
        coverage=coverage,
        folds=FOLDS,
        errata=errata(),
        machine=machine(found.book),
        shipped=stored(),
        claims=claims(found),
        standings=lambda problem: standings(found, problem),
        lengths=LENGTHS,
    )
    return text.lstrip()


def errata() -> list[dict[str, str]]:
    """Return where the paper's text is wrong or silent: subject, printed text, objection, and our reading."""
    text = files("pibls.paper").joinpath("errata.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["erratum"])


def machine(book: Ledger) -> dict[str, str]:
    """Return the machine and versions that write the report, and those that the cells were computed with if others."""
    used = {**versions(), "matplotlib": version("matplotlib")}
    facts = {
        "processor": processor(),
        "cores": f"{available_cores()} available of {os.cpu_count()}",
        "memory": f"{format_bytes(available_memory())} free",
        "system": platform.platform(),
        **used,
    }
    stored = [cell.get("versions") or {} for cell in book.cells]
    for name in sorted({name for one in stored for name in one}):
        found = sorted({str(one[name]) for one in stored if name in one})
        facts |= {f"cells: {name}": ", ".join(found)} if found != [used.get(name)] else {}
    return facts


def spans(text: str) -> Markup:
    """Return a text whose numbers have names as HTML, each number in a span of its name.

    >>> print(spans("in [[comparisons|all]]3[[]] cases"))
    in <span data-n="comparisons|all">3</span> cases
    """
    return Markup(NAMED.sub(r'<span data-n="\1">\2</span>', str(escape(text))))  # noqa: S704 - escaped before


def number(value: float) -> str:
    """Return a number with three digits, as people write it in a table.

    >>> number(0.00012345), number(0.5), number(0.9999), number(34222.0), number(float("inf"))
    ('1.23e-4', '0.500', '1.00', '34222', '∞')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    mantissa, exponent = f"{value:.2e}".split("e")
    if value and not -1 <= int(exponent) < 6:
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.{max(0, 2 - int(exponent))}f}" if value else "0"


def shown(value: float | None, quantity: str = "") -> str:
    """Return a measured number: a count as an integer, an R² score near one by its distance to it.

    >>> shown(23.0), shown(23.0, "parameters"), shown(0.99999, "r2"), shown(None)
    ('23.0', '23', '1 − 1.00e-5', '–')
    """
    if value is None:
        return "–"
    if quantity == "r2" and 0.99 < value < 1:
        return f"1 − {number(1 - value)}"
    return format(value, _SHOWN[quantity]) if quantity in _SHOWN else number(value)


def printed(value: float | None, quantity: str = "") -> str:
    """Return a published number with the digits it is printed with."""
    return "–" if value is None else format(value, _PRINTED.get(quantity, ".4e"))


def spread_words(found: Iterable[Record | Summary | None], over: str = "seeds", extreme: str = "worst") -> str:
    """Return how the numbers of a table sum up seeds, runs or models: a single one is no median.

    >>> spread_words([summarise([1.0, 2.0])]), spread_words([summarise([1.0])], "runs")
    ('median [worst] over seeds', 'one run')
    """
    summaries = [item.measured if isinstance(item, Record) else item for item in found]
    counts = {summary.count for summary in summaries if summary}
    if counts == {1}:
        return f"one {over[:-1]}"
    return f"median [{extreme}] over {over}" + (f", without brackets one {over[:-1]}" if 1 in counts else "")


def listed(values: Sequence[Any]) -> str:
    """Return values as the paper writes them, small ones as powers of ten; a long run by its ends.

    >>> listed([0.0001, 0.01, 1.0]), listed(["tanh"]), listed([3, 23, 43, 63, 83, 103])
    ('1e-4, 1e-2, 1', 'tanh', '3, 23, …, 103')
    """
    if len(values) > 5:
        return f"{values[0]}, {values[1]}, …, {values[-1]}"
    powers = (v if isinstance(v, str) else f"1e{round(math.log10(v))}" if v < 0.1 else f"{v:g}" for v in values)
    return ", ".join(powers)


def each(values: float | Sequence[float]) -> str:
    """Return one or more numbers in a row.

    >>> each(6.0), each((3.0, 0.5))
    ('6', '3, 0.5')
    """
    return ", ".join(f"{value:g}" for value in (values if isinstance(values, list | tuple) else [values]))
