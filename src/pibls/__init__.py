"""Solve differential equations without meshing or training; every answer says how accurate it is.

>>> import sympy as sp, pibls as pb
>>> x, y = pb.coordinates("x y")
>>> u = pb.field("u", x, y)
>>> square = pb.Rectangle((x, 0, 1), (y, 0, 1))
>>> source = 2 * sp.pi**2 * sp.sin(sp.pi * x) * sp.sin(sp.pi * y)
>>> problem = pb.Problem(sp.Eq(-pb.laplacian(u), source), square, [pb.Dirichlet(u, 0)])
>>> solution = pb.solve(problem)
>>> bool(abs(solution([[0.5, 0.5]]) - 1) < 1e-8)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pibls import problems
    from pibls.errors import PiblsError
    from pibls.geometry import (
        Ball,
        Box,
        Cone,
        Cylinder,
        Disk,
        Extrusion,
        Implicit,
        Interval,
        Outline,
        PointCloud,
        Points,
        Polygon,
        Rectangle,
        Revolution,
        Solid,
        Star,
        TimeInterval,
        Torus,
        per_region,
        read_shape,
    )
    from pibls.methods import PIBLS, PIELM, BayesianPIELM, Cells
    from pibls.paper.cross_validation import cross_validate
    from pibls.paper.pinn import PINN
    from pibls.problem import (
        Absorbing,
        Condition,
        Convection,
        Dirichlet,
        Initial,
        Interface,
        Mean,
        Neumann,
        Observation,
        Periodic,
        Problem,
        Robin,
        Smooth,
        Symmetry,
        Traction,
        coordinates,
        curl,
        data,
        div,
        eigenvalue,
        field,
        flux,
        grad,
        inside,
        laplacian,
        normal,
        normal_derivative,
        outside,
        parameter,
        stress,
        unknown,
        von_mises,
    )
    from pibls.quantities import Quantity, first_time, flow, integral, maximum, mean, minimum
    from pibls.report import metrics
    from pibls.solution import Solution, load
    from pibls.spectrum import Spectrum, eigen
    from pibls.status import Status
    from pibls.sweeps import Uncertainty, sweep, uncertainty
    from pibls.text import parse, read_problem
    from pibls.tuning import prepare, solve

    __version__: str

__all__ = ["PIBLS", "PIELM", "PINN", "Absorbing", "Ball", "BayesianPIELM", "Box", "Cells", "Condition", "Cone"]
__all__ += ["Convection", "Quantity", "Uncertainty", "curl", "first_time", "flow", "integral", "maximum", "mean"]
__all__ += ["minimum", "uncertainty", "von_mises"]
__all__ += ["Cylinder", "Dirichlet", "Disk", "Extrusion", "Implicit", "Initial", "Interface", "Interval", "Mean"]
__all__ += ["Neumann", "Observation", "Outline", "Periodic", "PiblsError", "PointCloud", "Points", "Polygon"]
__all__ += ["Problem", "Rectangle", "Revolution", "Robin", "Smooth", "Solid", "Solution", "Spectrum", "Star"]
__all__ += ["Status", "Symmetry", "TimeInterval", "Torus", "Traction", "coordinates", "cross_validate", "data", "div"]
__all__ += ["eigen", "eigenvalue", "field", "flux", "grad", "inside", "laplacian", "load", "metrics", "normal"]
__all__ += ["normal_derivative", "outside", "parameter", "parse", "per_region", "prepare", "problems", "read_problem"]
__all__ += ["read_shape", "solve", "stress", "sweep", "unknown"]

# Where the exports live. They are loaded when they are first asked for: most of the time of a short command goes into
# imports, and showing a version or completing a name needs none of them. Problems and geometry have all the others.
_HOMES: dict[str, tuple[str, ...]] = {
    "errors": ("PiblsError",),
    "status": ("Status",),
    "text": ("parse", "read_problem"),
    "solution": ("Solution", "load"),
    "quantities": ("Quantity", "first_time", "flow", "integral", "maximum", "mean", "minimum"),
    "methods": ("PIBLS", "PIELM", "BayesianPIELM", "Cells"),
    "tuning": ("prepare", "solve"),
    "spectrum": ("Spectrum", "eigen"),
    "sweeps": ("Uncertainty", "sweep", "uncertainty"),
    "paper.cross_validation": ("cross_validate",),
    "paper.pinn": ("PINN",),
    "report": ("metrics",),
    "problem": (),
    "geometry": (),
}


def _find(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("pibls")
    if not name.startswith("_"):
        try:
            return import_module(f"pibls.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"pibls.{name}":
                raise
    if name in __all__:
        own = [home for home, names in _HOMES.items() if name in names]
        for module in (import_module(f"pibls.{home}") for home in own or ("problem", "geometry")):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'pibls' has no attribute {name!r}")


if not TYPE_CHECKING:  # a type checker would take every name for an attribute

    def __getattr__(name: str) -> Any:
        value = globals()[name] = _find(name)
        return value


def __dir__() -> list[str]:
    # What this file needs itself (its imports and helpers) is no part of the library.
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
