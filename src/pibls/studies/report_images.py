"""The figures of the report, drawn, written as PNG and PDF, and ready for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure

from pibls.problems import catalogue
from pibls.studies.published import METHODS, Published
from pibls.studies.report_coverage import draw_coverage
from pibls.studies.report_curves import draw_error_curves, draw_overview
from pibls.studies.report_drawing import save
from pibls.studies.report_html import Image
from pibls.studies.report_ledger import PROBLEMS, Ledger
from pibls.studies.report_maps import draw_graphs, draw_maps, pictures

__all__ = ["draw_all"]

_CURVES = {"advection": "4", "poisson_star": "6a", "poisson_square": "6b", "diffusion_reaction": "8"}
_SOLUTIONS = {"advection": "5", "poisson_star": "6c", "poisson_square": "6d", "diffusion_reaction": "7"}
_EXPLAINED = (
    "Lines are medians over seeds, bands reach from the best to the worst seed, hollow stars are the published values."
)


def draw_all(book: Ledger, published: Published, folder: Path) -> dict[str, Image]:
    """Draw every figure, write its files, and return them by name."""
    return {image.name: image for image in _images(book, published, folder)}


def _images(book: Ledger, published: Published, folder: Path) -> Iterator[Image]:
    overview = draw_overview(_overview_rows(book, published))
    words = "Relative RMSE at the test points: every seed (ticks), median (filled marker), published value (star)."
    yield _image("overview", "Errors of all methods on all problems", words, overview, folder)
    for problem, words in PROBLEMS.items():
        yield _curves(book, published, problem, words, folder)
        yield _solutions(book, problem, words, folder)
    words = (
        "Bands of B-PI-ELM with noisy measurements: (a) one repetition; (b) how much of the solution is inside, "
        "against how much should be (dashed)."
    )
    yield _image("figure-coverage", "Bands with noisy measurements", words, draw_coverage(book), folder)


def _overview_rows(book: Ledger, published: Published) -> list[tuple[str, str, list[float], float | None]]:
    rows = []
    for problem in PROBLEMS:
        n = published.table_size(problem)
        cells = book.select(kind="accuracy", problem=problem, n_train=n, score="exact")
        for method in METHODS:
            values = cells.select(method=method).numbers("test", "relative_rmse")
            rows.append((problem, method, values, published.accuracy(problem, method, "test", "relative_rmse")))
        wider = book.select(kind="beyond", problem=problem, n_train=n, score="exact").numbers("test", "relative_rmse")
        solved = book.select(kind="solve", problem=problem).numbers("test", "relative_rmse")
        rows += [(problem, "beyond", wider, None), (problem, "solve", solved, None)]
    return rows


def _curves(book: Ledger, published: Published, problem: str, words: str, folder: Path) -> Image:
    cells = book.select(kind="accuracy", problem=problem, score="exact")
    figure = draw_error_curves(cells, lambda *key: published.accuracy(problem, *key), published.table_size(problem))
    name = f"figure-{_CURVES[problem]}"
    title = f"Figure {_CURVES[problem]}. Errors over the number of training points, {words}."
    return _image(name, title, f"<b>{title}</b> {_EXPLAINED} {_seed_words(cells)}", figure, folder)


def _seed_words(cells: Ledger) -> str:
    """Return how many seeds the points of a figure stand for."""
    counts = Counter((cell["method"], cell["n_train"]) for cell in cells.cells)
    if not counts:
        return ""
    few, many = min(counts.values()), max(counts.values())
    return f"Seeds per point: {few}." if few == many else f"Seeds per point: {few} to {many}, most at the table's."


def _solutions(book: Ledger, problem: str, words: str, folder: Path) -> Image:
    cells = book.select(kind="curve", problem=problem)
    drawn = pictures(cells)
    name = f"figure-{_SOLUTIONS[problem]}"
    title = f"Figure {_SOLUTIONS[problem]}. Approximate and exact solution, {words}"
    title += f", {cells.cells[0]['n_train']} training points." if drawn else "."
    if not drawn:
        return _image(name, title, f"<b>{title}</b>", None, folder)
    statement = catalogue()[problem]()
    if len(statement.domain.coordinates) == 1:
        figure, rest = draw_graphs(drawn, statement.domain.coordinates[0].name), ""
    else:
        figure, rest = draw_maps(drawn, statement), " Each row has one scale; errors and residuals are logarithmic."
    return _image(name, title, f"<b>{title}</b>{rest}", figure, folder)


def _image(name: str, title: str, caption: str, figure: Figure | None, folder: Path) -> Image:
    return Image(name, title, caption, None if figure is None else save(figure, folder, name))
