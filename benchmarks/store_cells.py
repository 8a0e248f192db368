"""Put the cells of a full study into the library, which shows them where a smaller profile does not run the same.

    python -m benchmarks.store_cells OUT --machine "one H200, 16 cores" --commit 1234567 [--date 2026-11-16]

OUT is the folder of ``pibls reproduce --profile full``. What is missing there is named, and nothing is written, unless
``--incomplete`` is given: of networks that were searched for and not trained, what was chosen is stored then.
"""

from __future__ import annotations

import argparse
import datetime
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from pibls.problems import catalogue
from pibls.studies import stored
from pibls.studies.cells import Cell, Spec, Store
from pibls.studies.protocol import parameters, rebuilt
from pibls.studies.tasks import plan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    parser.add_argument("--incomplete", action="store_true", help="write what is there, though some is missing")
    options = parser.parse_args()
    store, console = Store(options.out), Console()
    specs = [spec for stage in plan("full") for task in stage for spec in task.specs if spec.kind != "search"]
    cells = [(spec, store.read(spec)) for spec in specs]
    missing = [spec for spec, cell in cells if cell is None]
    for spec in missing[:20]:
        console.print(f"missing: {spec}")
    if missing and not options.incomplete:
        raise SystemExit(f"{len(missing)} of {len(specs)} cells are missing")
    cells += [(spec, _chosen(spec, store)) for spec in missing if spec.kind == "accuracy"]
    path = Path(stored.__file__).with_name(stored.FILE)
    # Only what the report shows: a curve of every method but PINN is drawn by every profile.
    kept = tuple(c for s, c in cells if c is not None and (s.kind != "curve" or s.method == "PINN"))
    stored.write_stored(path, stored.Stored(options.machine, options.date, options.commit, kept))
    console.print(f"{len(kept)} cells, {path.stat().st_size / 1024:.0f} KiB: {path}")


def _chosen(spec: Spec, store: Store) -> Cell | None:
    """Return what a search chose, and how large it is."""
    cell = store.read(replace(spec, kind="search"))
    if cell is None:
        return None
    return {**cell, "parameters": parameters(rebuilt(spec.method, cell["settings"]), catalogue()[spec.problem]())}


if __name__ == "__main__":
    main()
