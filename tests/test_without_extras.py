"""Everything that needs no extra works in a process where importing one fails: study, commands and library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTRAS = ("torch", "meshio", "shapely", "trimesh", "xarray", "pandas")

BARE = f"""
import sys
from importlib.machinery import PathFinder
real = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in {EXTRAS!r} else real(name, *rest)
sys.path.insert(0, {str(ROOT)!r})
"""

STUDY = """
from benchmarks import kills
if __name__ in ("__main__", "__mp_main__"):
    kills.shrink()
    from pibls.paper import tasks
    from pibls.paper.profiles import Profile
    methods = dict.fromkeys(("PI-BLS", "PI-ELM", "BPI-ELM"), 1)
    tasks.PROFILES = {"quick": Profile(methods, 1, 0, 1, ("advection",))}
    tasks._COSTS["PINN"] = 1.0
if __name__ == "__main__":
    from typer.testing import CliRunner
    from pibls.cli import app
    found = CliRunner().invoke(app, ["reproduce", "--out", sys.argv[1], "--workers", "1", "--only", "advection"])
    print(found.output)
    assert found.exit_code == 0, found.output
"""

COMMANDS = """
from pathlib import Path
from typer.testing import CliRunner
from pibls.cli import app
folder = Path(sys.argv[1])
def run(*words):
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 0, (words, found.output, found.exception)
    return found.output
file, saved, at = folder / "problem.toml", str(folder / "solution.npz"), folder / "at.csv"
at.write_text("x\\n0.5\\n")
run("--help")
run("list")
run("show", "zoo:advection")
run("new", "poisson", "--out", str(file))
run("check", str(file))
run("solve", "zoo:advection", "--save", saved, "--plot", str(folder / "plot.png"), "--csv", str(folder / "values.csv"))
run("eval", saved, "--at", str(at))
run("doctor")
run("bench", "--help")
"""

LIBRARY = """
import pibls as pb
problem = pb.problems.advection()
points = pb.Points.sample(problem, interior=30)
for score in ("residual", "exact"):
    found = pb.cross_validate([pb.PIELM(nodes=20, scale=s) for s in (2.0, 8.0)], problem, points, score=score)
    assert len(found.table) == 2
methods = [pb.PIBLS(feature_groups=2, feature_nodes=5), pb.PIELM(nodes=20), pb.BayesianPIELM(nodes=20)]
for method in methods:
    pb.metrics(method.fit(problem, points))
solution = pb.solve(problem, progress=False)
solution.residual(0)
for way in ("to_xarray", "to_pandas", "to_vtk", "to_netcdf"):
    try:
        getattr(solution, way)(*(["a.vtu"] if way in ("to_vtk", "to_netcdf") else []))
    except pb.PiblsError as error:
        assert "pip install 'pibls[files]'" in str(error)
    else:
        raise AssertionError("a file was made without its package")
try:
    pb.PINN(width=3).fit(problem, points)
except pb.PiblsError as error:
    assert "pip install" in str(error)
else:
    raise AssertionError("a PINN was trained without torch")
"""


def bare(script, folder):
    path = folder / "script.py"
    path.write_text(BARE + script, encoding="utf-8")
    return subprocess.run([sys.executable, str(path), str(folder / "out")], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script", [STUDY, COMMANDS, LIBRARY], ids=["study", "commands", "library"])
def test_without_extras(script, tmp_path):
    (tmp_path / "out").mkdir()
    done = bare(script, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    if script is STUDY:
        assert "failed" not in done.stdout
        assert (tmp_path / "out" / "report.html").stat().st_size > 100_000
