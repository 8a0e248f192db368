"""The automatic solver reaches its tolerance, knows its error, and says what is wrong with a problem that has none."""

import io

import numpy as np
import pytest

import pibls as pb
from pibls.errors import InputError
from pibls.geometry import Points
from pibls.problems import ill_posed
from pibls.tuning import campaign as campaign_module
from pibls.tuning.choice import Choice
from pibls.tuning.judge import Judge, root_mean_square
from pibls.tuning.laboratory import Block, Laboratory
from pibls.tuning.pilots import Pilots
from pibls.tuning.posedness import find_ambiguity, joint_defects
from pibls.tuning.progress import Progress, reporter
from pibls.tuning.scan import choose_scale, refine_scale, vertex

# Enough on a slow machine too.
AMPLE = 30.0
QUICK = [
    "advection",
    "annulus",
    "beam",
    "biharmonic",
    "convection_diffusion",
    "damped_oscillator",
    "diffusion_reaction",
]
QUICK += ["heat_robin", "l_shape", "oscillator", "poisson", "poisson_star", "robin_disk", "variable_coefficient_data"]


def by_network(name, *, tol=1e-6, budget=AMPLE, progress=lambda _: None):
    """Solve with one network, as where there are no cells: in four coordinates, on point clouds, on devices."""
    lab = Laboratory(pb.problems.catalogue()[name](), 0)
    return campaign_module.Campaign(lab, tol, budget, progress).run().finished()


@pytest.mark.parametrize("name", QUICK)
def test_zoo_converges_to_the_tolerance(name):
    solution = pb.solve(pb.problems.catalogue()[name](), budget=AMPLE)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.error_estimate <= 1e-6
    assert solution.true_error() <= 1e-5


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("name", ["helmholtz", "poisson_gaussian"])
def test_estimate_is_near_the_true_error(name, tol):
    solution = pb.solve(pb.problems.catalogue()[name](), tol=tol, seed=3, budget=AMPLE)
    assert solution.status == "converged"
    assert 0.1 < solution.true_error() / solution.error_estimate < 10


@pytest.mark.parametrize("name", sorted(ill_posed()))
def test_ill_posed_problems_are_told(name):
    case = ill_posed()[name]
    solution = pb.solve(case.problem())
    assert solution.status == "ill-posed"
    # With data that no solution fits, and many that nearly do, either is right.
    words = {"non-unique": "not unique", "unstable": "unstable", "inconsistent": "contradict|no solution"}
    assert any(word in solution.diagnostics.message for word in words[case.kind].split("|"))


def test_a_well_posed_problem_hides_nothing_and_a_gauge_repairs_one_that_does():
    lab = Laboratory(pb.problems.neumann_gauge(), 0)
    network = lab.network([Block(100, (3.0, 3.0))])
    assert find_ambiguity(lab.problem, lab.points(100), network).visibility > 1e-3
    bare = Laboratory(ill_posed()["pure_neumann"].problem(), 0)
    hidden = find_ambiguity(bare.problem, bare.points(100), network)
    assert hidden.is_unseen
    X = bare.problem.domain.sample(50)
    values = network.evaluate(X, [(0, 0)])[0, 0] @ hidden.weights[0]
    assert np.ptp(values) < 1e-4 * np.abs(values).max()  # the hidden function is a constant


def test_slots_between_fins_are_resolved_and_not_called_a_contradiction():
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    corners = [(0, 0), (3, 0), (3, 3), (2.7, 3), (2.7, 0.5), (0.3, 0.5), (0.3, 3), (0, 3)]
    fins = pb.Polygon((x, y), corners)
    air = [pb.Robin(u, 0.05, 1, 0, on=getattr(fins, f"edge{i}")) for i in range(1, len(corners))]
    problem = pb.Problem(pb.laplacian(u), fins, [pb.Neumann(u, 1.2, on=fins.edge0), *air])
    solution = pb.solve(problem, tol=1e-3)
    assert solution.status == "converged"
    # What the chip gives, the air takes.
    around = fins.boundary.where(lambda X: X[:, 1] > 1e-9)
    X, _, weights = around.quadrature(4000)
    assert 0.05 * weights @ solution(X) == pytest.approx(1.2 * 3, rel=5e-3)


def test_corners_without_singular_functions_are_known():
    x, y, t = pb.coordinates("x y t")
    u, v = pb.field("u", x, y), pb.field("v", x, y, t)
    bracket = pb.Rectangle((x, 0, 2), (y, 0, 2)) - pb.Rectangle((x, 1, 2), (y, 1, 2))
    frame = pb.Rectangle((x, 0, 3), (y, 0, 3)) - pb.Rectangle((x, 1, 2), (y, 1, 2))
    steady = [pb.Problem(pb.laplacian(u) + 1, shape, [pb.Dirichlet(u, 0)]) for shape in (bracket, frame)]
    conditions = [pb.Dirichlet(v, 0), pb.Initial(v, 0)]
    timed = pb.Problem(v.diff(t) - pb.laplacian(v) - 1, bracket * pb.TimeInterval(t, 0, 1), conditions)
    assert [Laboratory(p, 0).has_plain_corners for p in (*steady, timed)] == [False, True, True]


def test_how_much_happens_is_known():
    problem = pb.problems.heat_robin()
    lab = Laboratory(problem, 0)
    solution = pb.solve(problem)
    rate = solution.derivative(problem.fields[0], problem.domain.time)
    X, low_high = lab.compare_points, problem.domain.bounds[-1]
    expected = np.ptp(low_high) * np.linalg.norm(rate(X)) / np.linalg.norm(solution(X))
    assert lab.turns(solution) == pytest.approx(expected)
    assert Laboratory(pb.problems.poisson(), 0).turns(pb.solve(pb.problems.poisson(), tol=1e-2)) == 0.0


@pytest.mark.parametrize("seed", [0, 1])
def test_what_adds_up_over_a_long_time_is_not_taken_for_solved(seed):
    solution = pb.solve(pb.problems.advection_long(), time="space-time", budget=1.0, seed=seed)
    assert solution.true_error() > 0.5
    assert solution.status == "stalled"
    assert solution.error_estimate >= 1.0


def test_statements_that_fit_alone_but_not_together():
    problem = ill_posed()["contradictory_dirichlet"].problem()
    lab = Laboratory(problem, 0)
    together, alone = joint_defects(problem, lab.points(100), lab.network([Block(100, (3.0, 3.0))]))
    assert together > 0.1
    assert alone < 1e-6


def test_judge_is_one_for_nothing_and_small_for_a_solution():
    problem = pb.problems.poisson()
    judge = Judge(problem, Points.sample(problem, 150, seed=5))
    lab = Laboratory(problem, 0)
    solution = lab.fit([Block(240, (3.0, 3.0))], lab.points(240))
    verdict = judge(solution)
    assert verdict.total < 1e-6
    assert set(verdict.parts) == {s.name for s in problem.statements}
    scaled = type(solution)(problem, solution.network, 2 * solution.weights, "fitted", solution.diagnostics)
    # −2Δu − f = f: a residual of the size of f, compared with terms of twice that size in two derivatives and f.
    f = root_mean_square(2 * np.pi**2 * problem.exact_values(judge.points.interior)["u"])
    # Each second derivative is −π²u, of half the size of f, and twice that here.
    assert judge.sizes(scaled.evaluate)["the equation"] == pytest.approx(f * np.sqrt(3), rel=0.05)
    assert judge(scaled).parts["the equation"] == pytest.approx(1 / np.sqrt(3), rel=0.05)
    assert judge(scaled).worst == "the equation"


def test_scan_finds_an_anisotropic_scale_and_stops_when_told():
    def score(scale):
        return abs(np.log(scale[0] / 20)) + abs(np.log(scale[1] / 0.6))

    scan = choose_scale(score, 2, 0.0)
    assert scan.scale[0] == pytest.approx(20, rel=0.5)
    assert scan.scale[1] == pytest.approx(0.6, rel=0.5)
    assert scan.score == min(scan.tried.values())
    assert len(choose_scale(score, 2, 100.0).tried) == 8
    assert len(choose_scale(score, 2, 0.0, accept=lambda _: True).tried) == 8
    assert scan.leading(3)[0] == scan.scale
    near = choose_scale(score, 2, 0.0, known=[(1.0, 1.0), (15.0, 1.0)])
    assert near.scale[0] == pytest.approx(20, rel=0.5)
    assert len(near.tried) < len(scan.tried)
    over_time = choose_scale(lambda s: abs(np.log(s[2] / 16)) + s[0], 3, 0.0, time_axis=2)
    assert over_time.scale[2] == pytest.approx(16, rel=0.5)


def test_scale_that_is_good_enough_lies_between_those_of_the_list():
    def score(scale):
        return float(np.exp(np.log(scale[0] / 4.3) ** 2 - 9))

    assert choose_scale(score, 2, 1.0).scale == pytest.approx((4.3, 4.3), rel=1e-6)
    # An outlier in its place is not taken.
    assert choose_scale(lambda s: 1e3 if s[0] not in {3.0, 6.0, 1.5, 12.0} else score(s), 2, 1.0).scale == (6.0, 6.0)


def test_vertex_needs_a_valley_with_both_sides():
    assert vertex({1.0: 4.0, 2.0: 1.0, 4.0: 4.0}, 2.0) == pytest.approx(2.0)
    assert vertex({1.0: 1.0, 2.0: 2.0, 4.0: 4.0}, 1.0) is None
    assert vertex({1.0: 1.0, 2.0: 2.0, 4.0: 1.0}, 2.0) is None
    assert vertex({1.0: np.inf, 2.0: 1.0, 4.0: 2.0}, 2.0) is None
    assert vertex({1.0: 1.0, 2.0: 0.0, 4.0: 2.0}, 2.0) is None


def test_refined_scale_follows_a_valley_as_far_as_it_goes():
    def score(scale):
        return float(np.exp(np.log(scale[0] / 30) ** 2 + np.log(scale[1] / 1.5) ** 2))

    assert refine_scale(score, (3.0, 3.0)) == pytest.approx((30.0, 1.5), rel=0.05)
    assert np.ptp(refine_scale(score, (3.0, 3.0), together=True)) == 0
    assert refine_scale(score, (30.0, 1.5)) == pytest.approx((30.0, 1.5), rel=1e-6)


@pytest.mark.parametrize(("name", "grows"), [("boundary_layer", True), ("helmholtz", False)])
def test_scale_is_chosen_again_for_a_wider_network(name, grows):
    lab = Laboratory(pb.problems.catalogue()[name](), 0)
    start = (20.0,) * lab.axes
    choice = Choice(lab, 1e-6, scale=start, width=120)
    asked = []
    choice.report = asked.append
    blocks = choice.wider(240)
    assert sum(block.nodes for block in blocks) == 240
    # On a line with pilots of the new width, elsewhere with those of the width it starts at.
    assert set(asked) == {240 if grows else 120}
    pilots = Pilots(lab, 240 if grows else 120)
    assert pilots.score(choice.scale) < pilots.score(start)


def test_interrupt_returns_the_best_so_far():
    def stop(state: Progress) -> None:
        if state.stage == "solve" and state.nodes > 500:
            raise KeyboardInterrupt

    solution = by_network("helmholtz", tol=1e-18, progress=stop)
    assert solution.status == "stalled"
    assert "interrupted" in solution.diagnostics.message
    assert np.isfinite(solution([[0.5, 0.5]])).all()
    with pytest.raises(KeyboardInterrupt):
        by_network("helmholtz", progress=lambda _: (_ for _ in ()).throw(KeyboardInterrupt))


def test_budget_and_memory_are_named_as_limits(monkeypatch):
    solution = by_network("helmholtz", tol=1e-18, budget=0.01)
    assert solution.status == "stalled"
    assert "budget of 0.01 s" in solution.diagnostics.message
    monkeypatch.setattr(campaign_module, "available_memory", lambda: 10)
    solution = by_network("helmholtz", tol=1e-18)
    assert solution.status == "stalled"
    assert "memory limits" in solution.diagnostics.message
    with pytest.raises(InputError, match="'budget'"):
        pb.solve(pb.problems.poisson(), budget=0)


def test_round_off_is_named_as_limit():
    solution = by_network("advection", tol=1e-18)
    assert solution.status == "stalled"
    assert "Round-off" in solution.diagnostics.message
    assert solution.true_error() < 1e-13


def test_stages_and_settings_are_recorded_and_printed():
    solution = by_network("helmholtz")
    widths = [stage["nodes"] for stage in solution.diagnostics.stages]
    assert widths == sorted(widths)
    assert solution.diagnostics.settings["activation"] == "sin"
    printed = str(solution.diagnostics)
    assert f"{widths[-1]} nodes: held-out residual" in printed
    assert "within the tolerance" in printed


def test_holes_bring_their_own_nodes():
    solution = by_network("annulus")
    assert solution.network.special_nodes > 0
    assert solution.true_error() < 1e-10


def test_progress_is_shown_where_asked_and_nowhere_else(monkeypatch, capsys):
    with reporter(None) as report:
        report(Progress("scan", 0.1))
    with reporter(False) as report:
        report(Progress("scan", 0.1))
    assert capsys.readouterr().err == ""
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    with reporter(True) as report:
        report(Progress("solve", 1.0, 100, 1e-3, 1e-4))
    assert str(Progress("solve", 1.0, 100, 1e-3, 1e-4)) == "solve      1.0 s  100 nodes  residual 1e-03  error 1e-04"


def test_waiting_for_other_programs_hardly_counts(monkeypatch):
    campaign = campaign_module.Campaign(Laboratory(pb.problems.poisson(), 0), 1e-6, 10.0, lambda _: None)
    for wall, work, spent in [(9.0, 9.5, 9.0), (9.0, 4.0, 4.0), (9.0, 0.1, 3.0)]:
        monkeypatch.setattr(campaign_module.time, "perf_counter", lambda wall=wall: campaign.started + wall)
        monkeypatch.setattr(campaign_module.time, "process_time", lambda work=work: campaign.started_work + work)
        assert campaign.spent == pytest.approx(spent)


def test_a_wider_network_refutes_two_that_agreed_by_accident():
    lab = Laboratory(pb.problems.helmholtz(), 0)
    campaign = campaign_module.Campaign(lab, 1e-6, AMPLE, lambda _: None)
    first = campaign._candidate(lab.blocks(60, (3.0, 3.0)))
    campaign._certify(first)
    campaign.estimate = 1e-9  # as if by accident
    campaign._certify(campaign._candidate(lab.blocks(240, (5.0, 5.0))))
    assert campaign.best is not first.solution
    assert campaign.best.true_error() == pytest.approx(campaign.estimate, rel=0.5)
    campaign.estimate = 1e-9  # now the best is right, and a worse one does not take its place
    best = campaign.best
    campaign._certify(first)
    assert campaign.best is best
