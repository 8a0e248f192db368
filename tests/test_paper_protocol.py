"""Points, search and measures of the protocol, on grids small enough to check by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import pibls as pb
from internals import (
    PAPER_NAMES,
    Grid,
    Setting,
    Store,
    curves,
    exponent,
    fit_timed,
    growth_cell,
    parameters,
    race,
    rebuilt,
    search_all,
    select_all,
    selecting,
    solve_cell,
    time_all,
)

TOY = Grid(
    "PI-ELM",
    {"nodes": [10, 40], "lambda_b": [1e-2, 1.0], "activation": ["relu", "tanh"]},
    {"solver": "svd"},
    {},
)


@pytest.fixture
def few_scales(monkeypatch):
    monkeypatch.setattr(selecting, "scales", lambda *_: [0.1, 2.0, 40.0])


@pytest.mark.parametrize(("name", "conditions"), [("advection", 1), ("poisson_star", 40), ("diffusion_reaction", 20)])
def test_points_of_a_setting(name, conditions):
    setting, same, other = Setting(name, 20, 0), Setting(name, 20, 0), Setting(name, 20, 1)
    assert len(setting.points.interior) == 20
    assert sum(len(where) for where in setting.points.sets[1:]) == conditions
    assert (setting.points.interior == same.points.interior).all()
    assert (setting.test_points == same.test_points).all()
    assert not np.isin(setting.points.interior, other.points.interior).any()
    assert not np.isin(setting.points.interior, setting.test_points).any()
    assert setting.problem.domain.contains(setting.test_points).all()


def test_every_setting_draws_for_itself():
    first = [Setting(name, n, 0).points.interior[0, 0] for name in PAPER_NAMES for n in (20, 30)]
    assert len(set(first)) == len(first)


def test_errors_are_those_at_training_and_test_points():
    setting = Setting("advection", 30, 0)
    solution = pb.PIELM(nodes=30, scale=3.0).fit(setting.problem, setting.points)
    train, test = setting.errors(solution)
    for X, found in ((setting.points.interior, train), (setting.test_points, test)):
        error = solution(X) - setting.problem.exact_values(X)["u"]
        assert found["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
        assert found["linf"] == pytest.approx(np.abs(error).max())


def test_a_search_chooses_scale_then_settings(few_scales):
    setting = Setting("advection", 30, 0)
    (found,) = select_all(TOY, [setting])
    for selection in found.values():
        assert selection.method.activation == "tanh"
        assert selection.method.scale == 2.0
        # Two of the eight were pilots for their scale.
        assert selection.configurations == 8 + 6 - 2
        assert selection.seconds > 0
    every = [pb.PIELM(n, "tanh", 2.0, lambda_b=b, solver="svd") for n in (10, 40) for b in (1e-2, 1.0)]
    best = pb.cross_validate(every, setting.problem, setting.points, score="exact")
    assert found["exact"].score == pytest.approx(best.winner.mean, rel=1e-12)
    assert found["exact"].method == best.best


def test_an_activation_that_cannot_solve_the_problem_is_left_out(few_scales):
    (found,) = select_all(TOY, [Setting("poisson_star", 20, 0)], ("residual",))
    assert found["residual"].method.activation == "tanh"
    assert found["residual"].configurations == 4 + 3 - 1
    useless = Grid("PI-ELM", {**TOY.space, "activation": ["relu"]}, {}, {})
    with pytest.raises(pb.PiblsError, match="relu"):
        select_all(useless, [Setting("poisson_star", 20, 0)])


def test_a_race_that_was_killed_goes_on_from_the_last_length_it_finished(tmp_path, monkeypatch):
    entries = [(Setting("advection", 10, seed), [pb.PINN(width) for width in (1, 2, 8)]) for seed in (0, 1)]
    whole = race(entries, 2, (4, 8))
    asked = []

    def counted(jobs, **more):
        asked.append(len(jobs))
        if asked == [2, 2]:
            raise KeyboardInterrupt
        return search_all(jobs, **more)

    monkeypatch.setattr("pibls.paper.selecting.search_all", counted)
    with pytest.raises(KeyboardInterrupt):
        race(entries, 2, (4, 8), Store(tmp_path))
    again = race(entries, 2, (4, 8), Store(tmp_path))
    assert asked == [2, 2, 2]
    assert [r.record for r in again] == [r.record for r in whole]
    third = Setting("advection", 10, 2), entries[0][1]
    more = race([*entries, third], 2, (4, 8), Store(tmp_path))
    assert [r.record for r in more[:2]] == [r.record for r in whole]
    assert asked == [2, 2, 2, 1, 1]


def test_networks_race_and_the_winner_is_trained_longest(few_scales, monkeypatch):
    monkeypatch.setattr("pibls.paper.selecting.LENGTHS", (4, 8, 12))
    monkeypatch.setattr("pibls.paper.protocol._SHORT", 2)
    monkeypatch.setattr("pibls.paper.protocol._LONG", 4)
    space = {"width": [2, 4, 6, 8, 9], "lambda_b": [1.0], "activation": ["relu", "tanh"]}
    toy = Grid("PINN", space, {}, {"adam_iterations": 10, "lbfgs_iterations": 20}, {"width": 4})
    settings = [Setting("poisson_star", 12, seed) for seed in (0, 1)]
    for setting, by in zip(settings, select_all(toy, settings), strict=True):
        chosen = by["exact"]
        assert (chosen.method.adam_iterations, chosen.method.lbfgs_iterations) == (10, 20)
        # ReLU has no second derivative: its settings do not start.
        assert chosen.configurations == 5 + len(selecting.scales(setting.problem))
        leaders = chosen.course["leaders"]
        assert len(leaders) == 3
        assert leaders[-1]["settings"]["width"] == chosen.method.width
        assert leaders[-1]["score"] == chosen.score
        assert chosen.method.scale == chosen.course["pilots"]["tanh"][-1]["settings"]["scale"]
        # The winner at the last length is the better of the two that are left, by the same cross-validation.
        longest = replace(chosen.method, adam_iterations=6, lbfgs_iterations=6)
        alone = pb.cross_validate([longest], setting.problem, setting.points, seed=setting.seed, score="exact")
        assert alone.winner.mean == pytest.approx(chosen.score, rel=1e-6)
    ((_, entries),) = time_all([(chosen.method, setting)])
    assert entries["seconds"] > 0
    assert entries["extra"]["evaluations"] == 30
    assert entries["extra"]["device"] == "CPU"
    assert rebuilt("PINN", entries["settings"]) == chosen.method


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_curves_hold_solution_source_and_residual(name):
    setting = Setting(name, 20, 0)
    solution = pb.PIELM(nodes=20, scale=2.0).fit(setting.problem, setting.points)
    found = curves(solution)
    arrays = {key: np.asarray(values, dtype=float) for key, values in found.items()}
    second = {"advection": None, "diffusion_reaction": "t"}.get(name, "y")
    shape = (201,) if second is None else (len(arrays[second]), len(arrays["x"]))
    assert arrays["exact"].shape == shape
    assert max(shape) <= 201
    inside = np.isfinite(arrays["exact"])
    assert inside.all() == (name != "poisson_star")
    row, value = [int(i[len(i) // 2]) for i in np.nonzero(inside)], arrays["exact"]
    point = [arrays["x"][row[-1]]] if second is None else [arrays["x"][row[1]], arrays[second][row[0]]]
    assert value[tuple(row)] == pytest.approx(setting.problem.exact_values([point])["u"][0])
    assert arrays["predicted"][tuple(row)] == pytest.approx(solution([point])[0])
    difference = np.abs(arrays["source_predicted"] - arrays["source_exact"])
    assert difference[inside] == pytest.approx(arrays["residual"][inside])
    if name == "advection":
        exact = sum(c * np.cos(k * np.pi * arrays["x"]) for c, k in ((3 * np.pi, 6), (-np.pi, 2)))
        assert arrays["source_exact"] == pytest.approx(exact)


def test_parameters_are_what_is_trained():
    problem = pb.problems.poisson_star()
    assert parameters(pb.PINN(width=203), problem) == 42225
    assert parameters(pb.PIBLS(feature_groups=5, feature_nodes=10, enhancement_nodes=105), problem) == 155
    assert parameters(pb.BayesianPIELM(nodes=23), problem) == 23


def test_an_interrupted_training_is_no_result():
    class Interrupted:
        def fit(self, problem, points, *, seed=0, device=None):
            solution = pb.PIELM(nodes=4).fit(problem, points)
            return pb.Solution(problem, solution.network, solution.weights, "interrupted", solution.diagnostics)

    with pytest.raises(KeyboardInterrupt):
        fit_timed(Interrupted(), Setting("advection", 5, 0))


def test_a_plain_solve_reports_error_and_estimate():
    setting = Setting("advection", 30, 0)
    entries = solve_cell(setting)
    assert entries["test"]["relative_rmse"] < 1e-6
    assert entries["extra"]["status"] == "converged"
    assert entries["extra"]["estimate"] < 1e-6
    assert entries["parameters"] > 0


def test_stored_settings_give_the_method_back():
    for name, method in (
        ("PI-BLS", pb.PIBLS(scale=(12.0, 0.5), lambda_b=1.0, solver="svd")),
        ("PI-ELM", pb.PIELM(nodes=43)),
        ("BPI-ELM", pb.BayesianPIELM(nodes=43, lambda_i=0.1)),
    ):
        solution = method.fit(*(getattr(Setting("diffusion_reaction", 10, 0), k) for k in ("problem", "points")))
        settings = json.loads(json.dumps(solution.diagnostics.settings, default=dict))
        again = rebuilt(name, settings)
        assert json.dumps(again.__dict__, default=dict) == json.dumps(method.__dict__, default=dict)


def test_the_exponent_is_that_of_a_power():
    assert exponent([10, 20, 40, 80], [2.0 * n**1.5 for n in (10, 20, 40, 80)]) == pytest.approx(1.5)


@pytest.mark.parametrize("method", ["PI-BLS", "PI-ELM", "BPI-ELM", "PINN"])
def test_growth_is_recorded_with_its_sizes(monkeypatch, method):
    for table in ("_LINEAR_SIZES", "_TRAINED_SIZES"):
        monkeypatch.setattr(f"pibls.paper.complexity.{table}", {"points": ((20, 40), 20), "width": ((10, 20), 20)})
    for axis, sizes in (("points", [20, 40]), ("width", [10, 20])):
        cell = growth_cell(method, axis)
        assert cell["axis"] == axis
        assert cell["extra"]["sizes"] == sizes
        assert cell["exponent"] == pytest.approx(exponent(sizes, cell["extra"]["seconds"]))


@pytest.mark.parametrize("arguments", [("burgers", 10, 0), ("advection", 0, 0), ("advection", 10, -1)])
def test_refusals(arguments):
    with pytest.raises(pb.PiblsError, match="Setting"):
        Setting(*arguments)
