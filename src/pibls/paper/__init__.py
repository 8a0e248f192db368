"""The experiments of the paper: its numbers, its protocol, and a run of all of it that can be stopped at any time.

:mod:`published` holds what the paper prints, :mod:`grids` its search spaces, :mod:`protocol` how one method is searched
and measured on one problem, :mod:`tasks` what a study consists of, :mod:`cells` how results are stored, and
:mod:`runner` puts them to work. :mod:`findings` is what the results say; :mod:`report` tells it, by ``report.html.j2``.
"""

from pibls.paper.cells import read_cells
from pibls.paper.published import published
from pibls.paper.runner import StudyProgress, run_study

__all__ = ["StudyProgress", "published", "read_cells", "run_study"]
