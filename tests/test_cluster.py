"""One solve, and many, on the workers of a Dask cluster: the same answer, whoever is killed."""

from __future__ import annotations

import os
import pickle
import signal
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import pibls as pb
import sweep_helpers
from internals import ClusterSolver, ClusterWorkers, Layout, Rows, TreeSolver, leaves, part_values, refined, start_of
from pibls.errors import InputError, SolveError

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
square = pb.Rectangle((x, 0, 1), (y, 0, 1))


class Alone:
    """A client whose workers are this process; all that would travel is pickled."""

    __module__ = "distributed.alone"

    def __init__(self, workers=2):
        self.names, self.sent, self.calls = [f"machine {n}:1" for n in range(workers)], [], []

    def nthreads(self):
        return dict.fromkeys(self.names, 1)

    def submit(self, function, *given, **options):
        self.calls.append((function.__name__, options.get("workers")))
        return function(*given)

    def gather(self, futures, direct):
        self.sent += [pickle.dumps(one) for one in futures]
        return [pickle.loads(one) for one in self.sent[-len(futures) :]]

    def get_executor(self):
        raise NotImplementedError


def tree_of(problem, tol=1e-4, most=32):
    """Return rows and a tree of at least so many cells, smaller ones on one side."""
    start = start_of(problem, tol)
    root = start.root
    while len(leaves(root)) < most:
        some = leaves(root)[: max(1, 2 * len(leaves(root)) // 3)]
        root = refined(root, {leaf: [(0, None), (1, None)] for leaf in some})
    return start.data.rows, root


def distance(rows, one, two):
    """Return the relative distance of two solutions at the points of all parts."""
    layout, squares = rows.layout, np.zeros(2)
    for part, other in zip(one.parts, two.parts, strict=True):
        assert part is other
        values = [part_values(layout.reference, part, own.weights[part], part.points) for own in (one, two)]
        squares += [np.square(values[0] - values[1]).sum(), np.square(values[0]).sum()]
    return float(np.sqrt(squares[0] / squares[1]))


def poisson(domain, *conditions, coefficient=1):
    return pb.Problem(sp.Eq(-pb.div([coefficient * slope for slope in pb.grad(u)]), sp.exp(x)), domain, [*conditions])


PROBLEMS = {
    "varying": lambda: poisson(square, pb.Dirichlet(u, y), coefficient=1 + x * y),
    "periodic": lambda: poisson(square, pb.Periodic(u, x), pb.Dirichlet(u, 0, on=square.bottom | square.top)),
    "disk": lambda: poisson(pb.Disk((x, y), (0, 0), 1), pb.Dirichlet(u, x)),
    "jump": lambda: poisson(
        square, pb.Dirichlet(u, 0), coefficient=sp.Piecewise((5, x < sp.Rational(1, 3)), (1, True))
    ),
    "fluxes": lambda: poisson(
        square, pb.Dirichlet(u, 0, on=square.left), pb.Neumann(u, y, on=square.boundary - square.left)
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_subtrees_apart_make_the_solution_of_the_whole_tree(name, monkeypatch):
    # Balance sums depend on the order of elimination, and solutions with them to their own errors: have one order.
    for module in ("order", "cluster"):
        monkeypatch.setattr(f"pibls.cells.{module}.cheapest", lambda halves, *_: halves)
    rows, root = tree_of(PROBLEMS[name]())
    client = Alone()
    far, near = ClusterSolver(rows, client=client), TreeSolver(rows)
    one, two = far.solve(root), near.solve(root)
    assert two.residual < 1e-3
    assert distance(rows, one, two) < 1e-10
    assert one.residual == pytest.approx(two.residual, rel=1e-6)
    assert far.weakest()[0] == pytest.approx(near.weakest()[0], rel=0.5)
    made = [owner for function, owner in client.calls if function == "made"]
    assert len(made) == 8
    assert {tuple(owner) for owner in made} == {("machine 0:1",), ("machine 1:1",)}
    assert near.memory / 3 < far.memory < near.memory


def test_only_fronts_and_weights_travel():
    rows, root = tree_of(PROBLEMS["varying"](), most=120)
    client = Alone()
    solver = ClusterSolver(rows, client=client)
    solver.solve(root)
    factors = 2 * solver.memory
    assert sum(map(len, client.sent)) < 0.4 * factors
    more = ClusterSolver(rows, client=Alone(4))
    more.solve(root)
    assert more.memory < 0.7 * solver.memory  # of each machine, twice as many of them


def test_a_problem_without_a_unique_solution_is_seen_from_afar():
    rows, root = tree_of(poisson(square, pb.Neumann(u, 0)))
    far, near = ClusterSolver(rows, client=Alone()), TreeSolver(rows)
    far.solve(root)
    near.solve(root)
    assert far.weakest()[0] > 0.1 * near.weakest()[0] > 1e3


def test_a_solve_says_the_same_with_a_cluster_as_without():
    peak = sp.exp(-300 * ((x - 0.3) ** 2 + (y - 0.6) ** 2))
    problem = pb.Problem(sp.Eq(-pb.laplacian(u), peak), square, [pb.Dirichlet(u, 0)])
    client = Alone(1)
    far, near = pb.solve(problem, cluster=client), pb.solve(problem)
    assert client.calls
    assert far.status == near.status == "converged"
    assert far.error_estimate == pytest.approx(near.error_estimate, rel=0.5)
    X = square.sample(200)
    assert np.linalg.norm(far(X) - near(X)) < 1e-6 * np.linalg.norm(near(X))


def test_rows_that_gram_matrices_cannot_hold_are_rotated_from_afar():
    # Conditions on two sides only: nearly nothing determines the solution beside the others.
    rows, root = tree_of(poisson(square, pb.Dirichlet(u, 0, on=square.left), pb.Neumann(u, 0, on=square.right)))
    far, near = ClusterSolver(rows, client=Alone()), TreeSolver(rows)
    assert far.solve(root).residual == pytest.approx(near.solve(root).residual, rel=1e-3)


def test_a_cluster_that_gives_up_is_told_of_with_a_remedy():
    class LostError(Exception):
        __module__ = "distributed.scheduler"

    class Lost(Alone):
        __module__ = "distributed.alone"

        def gather(self, futures, direct):
            raise LostError("task")

    rows, root = tree_of(PROBLEMS["varying"]())
    with pytest.raises(SolveError, match=r"LostError: task.*lack memory"):
        ClusterSolver(rows, client=Lost()).solve(root)


def test_a_cluster_that_is_not_used_is_told_of():
    t = pb.coordinates("t")
    v = pb.field("v", t)
    decay = pb.Problem(sp.Eq(v.diff(t), -(v**2)), pb.TimeInterval(t, 0, 1), [pb.Initial(v, 1)])
    assert "The cluster was not used" in pb.solve(decay, tol=1e-3, cluster=Alone()).diagnostics.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cluster": 3}, "be a Client of Dask"),
        ({"cluster": Alone(), "device": "cpu"}, "does not go with a device"),
        ({"cluster": Alone(), "method": pb.PIELM(nodes=9)}, "does not go with a method"),
    ],
)
def test_clusters_that_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        pb.solve(PROBLEMS["varying"](), **options)


@pytest.fixture(scope="module")
def client():
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": "CRITICAL"}
    # Workers, also those in place of killed ones, come from a process that has imported everything.
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        distributed.utils.get_mp_context().set_forkserver_preload(["distributed", "pibls.sweeps.solving"])
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            yield client


def test_sweeps_on_a_cluster(client):
    asked = {"k": [1, 2, 4], "load": [8], "quantities": {"middle": lambda solution: solution([0.5])[0]}}
    assert pb.sweep(sweep_helpers.rod(), executor=client, **asked).identical(
        pb.sweep(sweep_helpers.rod(), executor=1, **asked)
    )


def test_a_worker_killed_at_any_moment_never_costs_the_answer(client, monkeypatch):
    rows, root = tree_of(PROBLEMS["varying"](), most=48)
    near = TreeSolver(rows).solve(root)
    do, killed = ClusterWorkers.do, set()
    for moment in ("made", "report_of", "passed_up", "passed_down", "weights_of"):
        client.wait_for_workers(2)
        pids = client.run(os.getpid)

        def done(self, function, *given, owner, moment=moment, pids=pids):
            future = do(self, function, *given, owner=owner)
            if function.__name__ == moment and moment not in killed:
                killed.add(moment)
                os.kill(pids[owner], signal.SIGKILL)
            return future

        monkeypatch.setattr(ClusterWorkers, "do", done)
        found = ClusterSolver(rows, client=client).solve(root)
        assert distance(rows, found, near) < max(1e-9, 0.1 * near.residual), moment
        assert found.residual == pytest.approx(near.residual, rel=0.05)
    assert len(killed) == 5


def test_workers_take_the_functions_that_they_are_given():
    """Rounding decides which combinations of nodes a machine draws, so that it must not draw them anew."""
    rows, root = tree_of(PROBLEMS["varying"]())
    layout = rows.layout
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((layout.reference.size,) * 2))[0]
    turned = replace(layout.reference, transform=layout.reference.transform @ rotation)
    rows = Rows(Layout(layout.problem, turned, layout.seed))
    here, there = TreeSolver(rows).solve(root), ClusterSolver(rows, client=Alone()).solve(root)
    assert distance(rows, here, there) < 1e-9
