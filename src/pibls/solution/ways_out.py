"""Ways out of a solution: files, tables, pictures, films, and how numbers change with parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class WaysOut:
    """Files, tables, pictures and films of a solution; the part of it that other programs and people see."""

    def save(self: Any, path: str | Path) -> Path:
        """Write the solution to one file, readable by :func:`pibls.load` in any process."""
        from pibls.solution.storage import save

        return save(self, path)

    def plot(self: Any, what: Any = "solution", **options: Any) -> Any:
        """Draw the solution or an expression of it, with its error; see :func:`pibls.report.plots.plot`."""
        from pibls.report.plots import plot

        return plot(self, what, **options)

    def animate(self: Any, path: str | Path, what: Any = "solution", **options: Any) -> Path:
        """Write the solution or an expression of it as a film through time; see :func:`pibls.report.films.animate`."""
        from pibls.report.films import animate

        return animate(self, path, what, **options)

    def to_torch(self: Any) -> Any:
        """Return the solution as a ``torch.nn.Module`` in double precision, differentiable by torch."""
        from pibls.solution.torch_module import to_torch

        return to_torch(self)

    def to_xarray(self: Any, n: int | None = None, **axes: Any) -> Any:
        """Return the values on a grid as an ``xarray.Dataset``.

        Every coordinate is a dimension, time too. Every field is a variable, with its estimated absolute error as a
        second one, such as ``u`` and ``u_error``; both are NaN outside the domain. Attributes tell the status, the
        error estimate, the tolerance and the problem as text. Needs ``pip install 'pibls[files]'``.

        Parameters
        ----------
        n
            Grid points along each coordinate; chosen by the number of coordinates if left out.
        **axes
            Values along coordinates, by name, in place of a regular grid: ``t=[0.1, 0.5]``.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> table = solve(problems.heat_robin()).to_xarray(n=11, t=[0.5])
        >>> dict(table.sizes), list(table.data_vars), table.attrs["status"]
        ({'x': 11, 't': 1}, ['u', 'u_error'], 'converged')
        """
        from pibls.report.grid_values import to_xarray

        return to_xarray(self, n, axes)

    def to_netcdf(self: Any, path: str | Path, n: int | None = None, **axes: Any) -> Path:
        """Write :meth:`to_xarray` to a netCDF file, as a whole or not at all."""
        from pibls.report.grid_values import to_xarray, write_netcdf

        return write_netcdf(to_xarray(self, n, axes, "to_netcdf"), path)

    def to_pandas(self: Any, n: int | None = None, **axes: Any) -> Any:
        """Return the values on a grid as a ``pandas.DataFrame``: a row per point of the domain.

        Parameters
        ----------
        n, **axes
            As for :meth:`to_xarray`.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> list(solve(problems.advection()).to_pandas(n=5).columns)
        ['x', 'u', 'u_error']
        """
        from pibls.report.grid_values import columns, installed

        return installed("pandas", "to_pandas").DataFrame(columns(self, n, axes, "to_pandas"))

    def to_csv(self: Any, path: str | Path, n: int | None = None, **axes: Any) -> Path:
        """Write the table of :meth:`to_pandas` as comma-separated values; neither needs the other."""
        from pibls.report.grid_values import to_csv

        return to_csv(self, path, n, axes)

    def to_vtk(self: Any, path: str | Path, *, times: Any = None, n: int | None = None) -> Path:
        """Write the solution as a mesh for ParaView and similar programs.

        The mesh consists of the cells of the solution, which end where the domain or a material ends. Fields and
        their estimated errors, such as ``u`` and ``u_error``, are data of its points. Needs ``pip install
        'pibls[files]'``.

        Parameters
        ----------
        path
            A file that ends with ``.vtu`` or ``.vtk``; or with ``.pvd``, which lists one ``.vtu`` file per time.
        times
            For a problem in time, at which times. Left out, a ``.pvd`` file has 21 of them, and any other file the
            whole of space and time, with time as the last coordinate.
        n
            Pieces along each axis of a cell; chosen if left out.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> from tempfile import TemporaryDirectory
        >>> import meshio
        >>> with TemporaryDirectory() as folder:
        ...     mesh = meshio.read(solve(problems.annulus(), tol=1e-3).to_vtk(f"{folder}/annulus.vtu"))
        >>> sorted(mesh.point_data), sorted(mesh.cells_dict)
        (['u', 'u_error'], ['quad', 'triangle'])
        """
        from pibls.report.vtk_mesh import to_vtk

        return to_vtk(self, path, times, n)

    def sensitivity(self: Any, quantity: Any, parameters: Any, budget: float = 10.0) -> Any:
        """Return the derivatives of a number by parameters of the problem, each with an error.

        The problem linearised at the parameters tells how the fields change with them.

        Parameters
        ----------
        quantity
            A quantity such as ``maximum(u)``, an expression at a point such as ``u.subs(x, 0)``, or a function of a
            solution that returns a number.
        parameters
            Parameters that :meth:`Problem.at` gave a value, or their names.
        budget
            Work, as of :func:`pibls.solve`; there are two solves, one of them to a hundredth of the tolerance.

        Returns
        -------
        Gradient
            An array to NumPy, with ``names``, ``values`` and estimated absolute ``errors``.

        Examples
        --------
        >>> import numpy, sympy
        >>> from pibls import Dirichlet, Interval, Problem, coordinates, field, parameter, solve
        >>> x, k, load = coordinates("x"), parameter("k"), parameter("load")
        >>> u = field("u", x)
        >>> problem = Problem(sympy.Eq(-k * u.diff(x, 2), load), Interval((x, 0, 1)), [Dirichlet(u, 0)])
        >>> solution = solve(problem.at(k=2, load=16))
        >>> numpy.round(solution.sensitivity(u.subs(x, 0.5), [k, load]), 9)  # of load/(8 k)
        array([-0.5   ,  0.0625])
        """
        from pibls.tuning.gradient import sensitivity

        return sensitivity(self, quantity, parameters, budget)
