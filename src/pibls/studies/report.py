"""The report of a study: published beside measured numbers, on one page that needs no network."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from pibls.checks import shorten
from pibls.errors import InputError
from pibls.studies.cells import Cell, Store
from pibls.studies.published import published
from pibls.studies.report_files import write_files
from pibls.studies.report_html import page
from pibls.studies.report_images import draw_all
from pibls.studies.report_ledger import Ledger
from pibls.studies.report_records import accuracy_records, parameter_records, time_records
from pibls.studies.report_sections import Findings, sections
from pibls.studies.tasks import plan

__all__ = ["write_report"]

TITLE = "Physics-informed broad learning: the paper's experiments, repeated"


def write_report(out: str | Path, profile: str = "quick") -> Path:
    """Write the report of what a study has stored: page, figures and files of numbers.

    Parameters
    ----------
    out
        Folder of the study. The page goes to ``report.html``, figures to ``figures``, numbers to ``csv``.
    profile
        Profile whose cells are told: ``"quick"`` or ``"full"``. What is missing is shown as not run.

    Returns
    -------
    Path
        The page.
    """
    folder = Path(out)
    if not Store(folder).folder.is_dir():
        raise InputError(
            f"The 'out' parameter of write_report must be the folder of a study. Got {shorten(str(out))} instead, "
            "which has no folder 'cells'. Run the study first: pibls reproduce --out ..."
        )
    cells, missing = _stored(folder, profile)
    book, paper = Ledger.of(cells), published()
    found = Findings(
        book,
        paper,
        accuracy_records(book, paper),
        time_records(book, paper),
        parameter_records(book, paper),
        draw_all(book, paper, folder / "figures"),
    )
    write_files(folder / "csv", book, [*found.accuracy, *found.parameters], found.times)
    path = folder / "report.html"
    path.write_text(page(TITLE, _lead(profile, len(cells), missing), sections(found)), encoding="utf-8")
    return path


def _stored(folder: Path, profile: str) -> tuple[list[Cell], int]:
    """Return the cells of a profile that are there, and how many are not.

    Both profiles may have left cells in one folder; those of a shorter training do not belong to the longer one.
    """
    store = Store(folder)
    specs = {spec.key: spec for stage in plan(profile) for task in stage for spec in task.specs}
    cells = [cell for spec in specs.values() if (cell := store.read(spec)) is not None]
    return cells, len(specs) - len(cells)


def _lead(profile: str, count: int, missing: int) -> str:
    absent = (
        f" {missing} more cells of this profile are not there; the command run again computes them." if missing else ""
    )
    if missing and find_spec("torch") is None:
        absent += " Those of PINN need torch: <code>pip install 'pibls[torch]'</code>."
    return (
        "<p>The experiments of “Physics-Informed Broad Learning System: An Efficient Backpropagation-Free Framework "
        "for Solving Partial Differential Equations” (Khatun, Sajid, Jha, Tanveer) under its protocol, with this "
        "library's implementation of all four methods. Each published number stands beside the one measured here: "
        "the median over seeds, with the worst seed in brackets.</p>"
        f"<p>Made by <code>pibls reproduce --profile {profile}</code> from {count} stored cells.{absent}</p>"
    )
