"""The machine and the versions a study ran with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pibls.runtime import available_cores, available_memory, format_bytes
from pibls.studies.report_ledger import Ledger
from pibls.studies.report_table import Table, text

__all__ = ["machine_table"]

_PACKAGES = ("pibls", "numpy", "scipy", "sympy", "torch", "matplotlib")
_CPU = Path("/proc/cpuinfo")


def machine_table(book: Ledger) -> Table:
    """Return the machine and versions that write the report, and those that the cells were computed with if others."""
    facts = {
        "processor": _processor(),
        "cores": f"{available_cores()} available of {os.cpu_count()}",
        "memory": f"{format_bytes(available_memory())} free",
        "system": platform.platform(),
        "Python": platform.python_version(),
    }
    facts |= {name: found for name in _PACKAGES if (found := _version(name)) is not None}
    for name in sorted({name for cell in book.cells for name in cell.get("versions") or {}}):
        used = sorted({str(cell["versions"][name]) for cell in book.cells if name in (cell.get("versions") or {})})
        if used != [facts.get({"python": "Python"}.get(name, name))]:
            facts[f"cells: {name}"] = ", ".join(used)
    rows = tuple(text(name, value) for name, value in facts.items())
    return Table("table-machine", "Machine and versions", (text("what", "value"),), rows)


def _processor() -> str:
    try:
        lines = _CPU.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
