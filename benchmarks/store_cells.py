"""Put the cells of a full study into the library, which shows them where a smaller profile does not run the same.

    python -m benchmarks.store_cells OUT [OUT ...]
    python -m benchmarks.store_cells --resume PINN OUT

Each OUT is the folder of ``pibls reproduce``; a study may have been run in parts on several machines. All seeds of a
number are taken from one folder, the last one that has the most of them; what is stored already is kept where no folder
has as many. Every cell says by which command, commit and machine it was computed, and when; one without a commit is
refused. What is missing is named.

``--resume`` writes the stored cells of a method to a folder, from which a full run goes on.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from pibls.paper import stored
from pibls.paper.cells import Cell, Spec, Store
from pibls.paper.ledger import Ledger
from pibls.paper.published import METHODS
from pibls.paper.tasks import plan

Cells = Mapping[Spec, Cell]


def _fullest(wanted: Sequence[Spec], sources: Sequence[Cells]) -> dict[Spec, Cell]:
    """Return the cells, those of all seeds of a number from one source: the last one that has the most of them."""
    groups: dict[Spec, list[Spec]] = {}
    for spec in wanted:
        groups.setdefault(replace(spec, seed=0), []).append(spec)
    found: dict[Spec, Cell] = {}
    for specs in groups.values():
        held: list[dict[Spec, Cell]] = [{s: source[s] for s in specs if s in source} for source in reversed(sources)]
        fullest = max(held, key=len)
        found |= fullest
    return found


def _wanted() -> list[Spec]:
    """Return the cells of the full study that are stored; every profile draws the curves of all methods but PINN."""
    specs = [spec for stage in plan("full") for task in stage for spec in task.specs if spec.kind != "search"]
    return [spec for spec in specs if spec.kind != "curve" or spec.method == "PINN"]


def _known() -> Cells:
    """Return the cells that are stored."""
    names = ("kind", "problem", "method", "n_train", "seed", "score")
    cells = ({name: value for name, value in c.items() if name != "stored"} for c in stored.stored().cells)
    return {Spec(**{name: cell[name] for name in names}, variant=cell.get("axis", "")): cell for cell in cells}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="+")
    parser.add_argument("--resume", choices=METHODS)
    told, console = parser.parse_args(), Console()
    stores, wanted = [Store(out) for out in told.out], _wanted()
    if told.resume:
        own = {spec: cell for spec, cell in _known().items() if spec.method == told.resume}
        for spec, cell in own.items():
            stores[0].write(spec, cell)
        console.print(f"{len(own)} cells of {told.resume}: {stores[0].folder}")
        return
    folders = ({spec: store.read(spec) for spec in wanted} for store in stores)
    read = [{spec: cell for spec, cell in folder.items() if cell is not None} for folder in folders]
    found = _fullest(wanted, [_known(), *read])
    lacking = Counter((s.kind, s.problem, s.method) for s in wanted if s not in found)
    for (kind, problem, method), count in lacking.items():
        console.print(f"missing: {count} cells of {kind}, {problem}, {method}")
    if bare := [spec for spec, cell in found.items() if not cell["made"].get("commit")]:
        raise SystemExit(f"{len(bare)} cells do not say from which commit they are, the first {bare[0]}")
    path = Path(stored.__file__).with_name(stored.FILE)
    stored.write_stored(path, Ledger(tuple(found.values())))
    console.print(f"{len(found)} of {len(wanted)} cells, {path.stat().st_size / 1024:.0f} KiB: {path}")


if __name__ == "__main__":
    main()
