"""What happened in a solve: what was chosen, how well each condition is met, how well the system is conditioned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Diagnostics", "Residual"]


@dataclass(frozen=True)
class Residual:
    """Size of a residual over its points, in the units of its equation."""

    rms: float
    max: float
    rows: int

    def __str__(self) -> str:
        return f"{self.rms:.1e} rms, {self.max:.1e} max over {self.rows} rows"


@dataclass(frozen=True)
class Diagnostics:
    """Record of a solve.

    Attributes
    ----------
    method
        Name of the method.
    settings
        Every setting that was used, also those chosen by the library.
    seed
        Seed of the random nodes.
    nodes, rows
        Size of the network, and rows of the system.
    solver, rank, condition
        The linear solver, the numerical rank it found, and an estimate of the condition number of the scaled matrix.
    residuals
        Residual at the points of the solve, per equation and condition.
    theorems
        The four properties of the method, checked on this solve: measured value, bounds, whether they hold.
    seconds
        Wall-clock time per stage.
    """

    method: str
    settings: Mapping[str, Any]
    seed: int
    nodes: int
    rows: int
    solver: str
    rank: int
    condition: float
    residuals: Mapping[str, Residual]
    theorems: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings and dictionaries, fit for JSON."""
        plain = _written(asdict(self))
        return dict(plain)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Diagnostics:
        """Rebuild the record from :meth:`as_dict`."""
        plain = _read(values)
        residuals = {name: Residual(**entry) for name, entry in plain["residuals"].items()}
        return cls(**{**plain, "residuals": residuals})

    def __str__(self) -> str:
        lines = [
            f"method      {self.method} ({', '.join(f'{k}={v}' for k, v in self.settings.items() if v is not None)})",
            f"size        {self.nodes} nodes, {self.rows} rows, seed {self.seed}",
            f"solver      {self.solver}: rank {self.rank}, condition {self.condition:.1e}",
            *(f"residual    {name}: {residual}" for name, residual in self.residuals.items()),
            "seconds     " + ", ".join(f"{stage} {value:.3f}" for stage, value in self.seconds.items()),
        ]
        return "\n".join(lines)


def _written(value: Any) -> Any:
    """JSON has no infinities: write them as words."""
    if isinstance(value, Mapping):
        return {str(key): _written(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_written(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _read(value: Any) -> Any:
    if isinstance(value, Mapping):
        return float(value["float"]) if set(value) == {"float"} else {key: _read(item) for key, item in value.items()}
    return [_read(item) for item in value] if isinstance(value, list) else value
