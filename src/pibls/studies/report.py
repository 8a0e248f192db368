"""The report of a study: published beside measured numbers, on one page that needs no network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from pibls.checks import shorten
from pibls.errors import InputError
from pibls.studies.cells import Cell, Store
from pibls.studies.published import Published, published
from pibls.studies.report_files import write_files
from pibls.studies.report_html import page
from pibls.studies.report_images import draw_all
from pibls.studies.report_ledger import Ledger
from pibls.studies.report_records import Record, accuracy_records, parameter_records, time_records
from pibls.studies.report_sections import Findings, sections
from pibls.studies.tasks import plan

__all__ = ["write_numbers", "write_report"]

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
    told = _told(folder, profile)
    figures = draw_all(told.book, told.paper, folder / "figures")
    found = Findings(told.book, told.paper, told.accuracy, told.times, told.parameters, figures)
    told.write(folder / "csv")
    path = folder / "report.html"
    path.write_text(page(TITLE, _lead(profile, told.count, told.missing), sections(found)), encoding="utf-8")
    return path


def write_numbers(out: str | Path, profile: str = "quick") -> tuple[Path, ...]:
    """Write only the files of numbers of what a study has stored; see :func:`write_report`."""
    return _told(Path(out), profile).write(Path(out) / "csv")


@dataclass(frozen=True)
class _Told:
    """The cells of a study, beside the published numbers."""

    book: Ledger
    paper: Published
    profile: str
    count: int
    missing: int

    @cached_property
    def accuracy(self) -> list[Record]:
        return accuracy_records(self.book, self.paper)

    @cached_property
    def times(self) -> list[Record]:
        return time_records(self.book, self.paper)

    @cached_property
    def parameters(self) -> list[Record]:
        return parameter_records(self.book, self.paper, self.profile)

    def write(self, folder: Path) -> tuple[Path, ...]:
        return write_files(folder, self.book, [*self.accuracy, *self.parameters], self.times)


def _told(folder: Path, profile: str) -> _Told:
    if not Store(folder).folder.is_dir():
        raise InputError(
            f"The 'out' parameter of write_report must be the folder of a study. Got {shorten(str(folder))} instead, "
            "which has no folder 'cells'. Run the study first: pibls reproduce --out ..."
        )
    cells, missing = _stored(folder, profile)
    return _Told(Ledger.of(cells), published(), profile, len(cells), missing)


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
