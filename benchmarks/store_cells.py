"""Put the cells of a full study into the library, which shows them where a smaller profile does not run the same.

    python -m benchmarks.store_cells OUT --machine "one H200, 16 cores" --commit 1234567 [--date 2026-11-16]

OUT is the folder of ``pibls reproduce --profile full``. What is missing there is named, and nothing is written then.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from rich.console import Console

from pibls.paper import stored
from pibls.paper.cells import Store
from pibls.paper.tasks import plan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    options = parser.parse_args()
    store, console = Store(options.out), Console()
    specs = [spec for stage in plan("full") for task in stage for spec in task.specs if spec.kind != "search"]
    cells = [(spec, store.read(spec)) for spec in specs]
    # A curve of every method but PINN is drawn by every profile.
    cells = [(spec, cell) for spec, cell in cells if spec.kind != "curve" or spec.method == "PINN"]
    missing = [spec for spec, cell in cells if cell is None]
    for spec in missing[:20]:
        console.print(f"missing: {spec}")
    if missing:
        raise SystemExit(f"{len(missing)} of {len(specs)} cells are missing")
    path = Path(stored.__file__).with_name(stored.FILE)
    kept = tuple(cell for _, cell in cells if cell is not None)
    stored.write_stored(path, stored.Stored(options.machine, options.date, options.commit, kept))
    console.print(f"{len(kept)} cells, {path.stat().st_size / 1024:.0f} KiB: {path}")


if __name__ == "__main__":
    main()
