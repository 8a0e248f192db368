"""Large solves in the docs: tables of sizes and times, fitted powers, and plans for sizes that were not run."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.scale_model import Leaf, Rates, Total, exponent, fitted, total
from benchmarks.tables import Row, power, results, table

MACHINE = 256  # GiB of memory of a machine in the plans
CORES = 32  # processes of a machine in the plans
PLANNED = {"square": (1e7, 1e8, 1e9), "cube": (1e6, 1e7, 1e8)}  # weights


def _groups() -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in results("scale").rows:
        groups.setdefault((row["kind"], row["on"]), []).append(row)
    return groups


def _leaf(row: Row) -> Leaf:
    sizes = [int(row[name]) for name in ("equations", "rows", "own", "face")]
    return Leaf(*sizes, dimension=3 if row["kind"] == "cube" else 2)


def _rates(rows: list[Row]) -> Rates:
    return fitted([(total(_leaf(row), int(row["side"])), float(row["seconds"])) for row in rows])


def scale() -> str:
    """Return sizes and times, a line per run."""
    lines = [
        [
            *(row["kind"], row["on"], row["cells"], row["weights"]),
            *(f"{float(row['seconds']):.3g}", f"{float(row['gib']):.2g}", f"{float(row['moved_mib']):.3g}"),
            *(f"{float(row['share']):.0%}", power(row["error"])),
        ]
        for row in results("scale").rows
    ]
    heads = ("domain", "on", "cells", "weights", "s", "GiB", "MiB moved", "of the matrix product", "true error")
    return table(heads, lines)


def scale_powers() -> str:
    """Return fitted powers and rates, a line per machine and domain."""
    lines = []
    for (kind, on), rows in _groups().items():
        if len(rows) < 3:
            continue
        weights, seconds, gib = ([float(row[name]) for row in rows] for name in ("weights", "seconds", "gib"))
        rates = _rates(rows)
        speed = f"{1e-9 / rates.per_operation:.3g}" if rates.per_operation else "not seen"
        powers = (f"{exponent(weights, seconds):.2f}", f"{exponent(weights, gib):.2f}")
        lines.append([kind, on, *powers, f"{1e3 * rates.per_cell:.3g}", speed])
    heads = ("domain", "on", "power of time", "power of memory", "ms a cell", "GFLOP/s in unions")
    return table(heads, lines)


def plan_of(kind: str, weights: float) -> tuple[Total, int, float]:
    """Return the counts of a large tree, the machines that hold it, and hours with them.

    A process of the cluster is as fast as the first machine that is kept, and unions above all subtrees are as fast as
    on the fastest.
    """
    every = [rows for (own, _), rows in _groups().items() if own == kind]
    leaf, rates = _leaf(every[0][0]), _rates(every[0])
    above = min(_rates(rows).per_operation or math.inf for rows in every)
    side, machines = round((weights / leaf.own) ** (1 / leaf.dimension)), 1
    while True:
        counts = total(leaf, side, 4 * CORES * machines)
        needed = math.ceil(8 * counts.numbers / 2**30 / MACHINE)
        if needed <= machines:
            return counts, machines, rates.seconds(counts, CORES * machines, above) / 3600
        machines = needed


def scale_plan() -> str:
    """Return what larger solves would take, a line per size."""
    lines = []
    for kind, sizes in PLANNED.items():
        for weights in sizes:
            counts, machines, hours = plan_of(kind, weights)
            bytes_of_top = 8 * counts.widest**2 / 2**30
            lines.append(
                [
                    *(
                        kind,
                        power(weights),
                        power(counts.cells, 1),
                        f"{counts.flops / 1e15:.3f}" if counts.flops < 1e15 else f"{counts.flops / 1e15:.0f}",
                    ),
                    *(f"{8 * counts.numbers / 2**40:.1f}", str(machines), f"{8 * counts.moved / 2**30:.0f}"),
                    *(
                        f"{bytes_of_top:.1f}" if bytes_of_top < 10 else f"{bytes_of_top:.0f}",
                        f"{hours:.2f}" if hours < 1 else f"{hours:.0f}",
                    ),
                ]
            )
    heads = (
        "domain",
        "weights",
        "cells",
        "PFLOP",
        "TiB of factors",
        "machines",
        "GiB moved",
        "GiB of the largest union",
    )
    return table((*heads, "hours"), lines)


SCALE_TABLES: dict[str, Callable[[], str]] = {
    function.__name__.replace("_", "-"): function for function in (scale, scale_powers, scale_plan)
}
