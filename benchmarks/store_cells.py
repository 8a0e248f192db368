"""Put the cells of a full study into the library, which shows them where a smaller profile does not run the same.

    python -m benchmarks.store_cells OUT [OUT ...]

Each OUT is the folder of ``pibls reproduce``; a study may have been run in parts on several machines. All seeds of a
number are taken from one folder, the last one that has the most of them. Every cell says by which command, commit and
machine it was computed, and when; one without a commit is refused. What no folder holds is named.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from pibls.paper import stored
from pibls.paper.cells import Cell, Spec, Store
from pibls.paper.tasks import plan


def _fullest(wanted: Sequence[Spec], stores: Sequence[Store]) -> dict[Spec, Cell]:
    """Return the cells, those of all seeds of a number from one folder: the last one that has the most of them."""
    groups: dict[Spec, list[Spec]] = {}
    for spec in wanted:
        groups.setdefault(replace(spec, seed=0), []).append(spec)
    found: dict[Spec, Cell] = {}
    for specs in groups.values():
        held = [[(spec, cell) for spec in specs if (cell := store.read(spec)) is not None] for store in stores]
        most = max(map(len, held))
        found |= dict(next(own for own in reversed(held) if len(own) == most))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="+")
    stores, console = [Store(out) for out in parser.parse_args().out], Console()
    specs = [spec for stage in plan("full") for task in stage for spec in task.specs if spec.kind != "search"]
    # A curve of every method but PINN is drawn by every profile.
    wanted = [spec for spec in specs if spec.kind != "curve" or spec.method == "PINN"]
    found = _fullest(wanted, stores)
    lacking = Counter((s.kind, s.problem, s.method) for s in wanted if s not in found)
    for (kind, problem, method), count in lacking.items():
        console.print(f"missing: {count} cells of {kind}, {problem}, {method}")
    if bare := [spec for spec, cell in found.items() if not cell["made"].get("commit")]:
        raise SystemExit(f"{len(bare)} cells do not say from which commit they are, the first {bare[0]}")
    path = Path(stored.__file__).with_name(stored.FILE)
    stored.write_stored(path, stored.Stored(tuple(found.values())))
    console.print(f"{len(found)} of {len(wanted)} cells, {path.stat().st_size / 1024:.0f} KiB: {path}")


if __name__ == "__main__":
    main()
