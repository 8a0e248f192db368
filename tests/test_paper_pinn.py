"""The trained baseline: its loss against the library's own rows, its derivatives, and what it learns."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import DeepNetwork, lower, propagate
from pibls.errors import FeatureError, InputError, MissingDependencyError, ProblemError, ResourceError, SolveError
from pibls.features import ACTIVATIONS, EnhancementGroup, FeatureGroup, activation
from pibls.geometry import Points

torch = pytest.importorskip("torch")

from internals import (  # noqa: E402
    Lbfgs,
    Loss,
    PinnFit,
    differentiable,
    fit_together,
    residual_evaluator,
)

TINY = pb.PINN(width=6, adam_iterations=2, lbfgs_iterations=2)
SMOOTH = [name for name, psi in ACTIVATIONS.items() if psi.smoothness > 5]


def fitted(problem, method=TINY, interior=30, **options):
    return method.fit(problem, Points.sample(problem, interior=interior), **options)


def deep(name, d=2, widths=(4, 3, 5), seed=0):
    rng = np.random.default_rng(seed)
    groups = []
    for below, here in zip((d, *widths), widths, strict=False):
        kind = EnhancementGroup if groups else FeatureGroup
        groups.append(kind(name, rng.normal(size=(below, here)), rng.normal(size=here)))
    return DeepNetwork(rng.normal(size=d), tuple(groups))


# Derivatives


@pytest.mark.parametrize("name", ["tanh", "sin", "gaussian"])
def test_derivatives_of_a_deep_network_are_those_of_sympy(name):
    network = deep(name, widths=(2, 2))
    x, y = sp.symbols("x y")
    function = {"tanh": sp.tanh, "sin": sp.sin, "gaussian": lambda z: sp.exp(-(z**2))}[name]
    values = sp.Matrix([[x - network.center[0], y - network.center[1]]])
    for layer in network.layers:
        values = (values * sp.Matrix(layer.weights) + sp.Matrix([layer.bias])).applyfunc(function)
    point = {x: 0.3, y: -0.2}
    indices = [(0, 0), (1, 0), (1, 1), (0, 2), (2, 1)]
    found = network.evaluate([[0.3, -0.2]], indices)
    for index in indices:
        expected = [float(v.diff(x, index[0], y, index[1]).subs(point)) for v in values]
        np.testing.assert_allclose(found[index][0], [*expected, float(not any(index))], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_by_the_weights_are_those_of_differences(name):
    rng = np.random.default_rng(0)
    weights = [torch.tensor(rng.normal(size=s), requires_grad=True) for s in ((2, 3), (3,), (3, 2), (2,))]
    X = torch.tensor(rng.uniform(-1, 1, (4, 2)))
    derive = differentiable([activation(name)])

    def values(*w):
        nodes = propagate(X, [(derive, w[0], w[1]), (derive, w[2], w[3])], [(2, 0), (1, 1)])
        return nodes[2, 0] + 2 * nodes[1, 1] - nodes[0, 0]

    assert torch.autograd.gradcheck(values, weights, rtol=1e-5, atol=1e-6)


def test_derivatives_through_three_layers_are_those_of_torch():
    network = deep("swish")
    X = torch.tensor([[0.3, -0.2], [0.1, 0.5]], dtype=torch.float64, requires_grad=True)
    nodes = X - torch.tensor(network.center)
    for layer in network.layers:
        z = nodes @ torch.tensor(layer.weights) + torch.tensor(layer.bias)
        nodes = z * torch.sigmoid(z)
    found = network.evaluate(X.detach().numpy(), [(1, 0), (2, 1)])
    for column in range(5):
        (slope,) = torch.autograd.grad(nodes[:, column].sum(), X, create_graph=True)
        (second,) = torch.autograd.grad(slope[:, 0].sum(), X, create_graph=True)
        (third,) = torch.autograd.grad(second[:, 0].sum(), X, retain_graph=True)
        np.testing.assert_allclose(found[1, 0][:, column], slope[:, 0].detach(), rtol=1e-10)
        np.testing.assert_allclose(found[2, 1][:, column], third[:, 1], rtol=1e-9, atol=1e-12)


def test_relu_passes_gradients_through_its_slope():
    z = torch.tensor([-1.0, 2.0], dtype=torch.float64, requires_grad=True)
    value = differentiable([activation("relu")])(z, (0, 1))
    (value[0].sum() + 3 * value[1].sum()).backward()
    assert z.grad.tolist() == [0.0, 1.0]


def test_a_deep_network_refuses_what_does_not_fit():
    good = deep("tanh")
    for layers in ((), good.layers[1:], (good.layers[0], good.layers[2]), (good.layers[0], good.layers[0])):
        with pytest.raises(FeatureError, match="'layers' of DeepNetwork"):
            DeepNetwork(good.center, layers)
    with pytest.raises(FeatureError, match="relu"):
        deep("relu").evaluate([[0.0, 0.0]], [(2, 0)])


# Residuals


def loss_of(problem, interior=25):
    points = Points.sample(problem, interior=interior)
    return points, Loss.of(problem, [points], [activation("tanh")], lambda a: torch.as_tensor(np.array(a)))


ZOO = ["advection", "robin_disk", "neumann_gauge", "periodic_advection", "klein_gordon", "stokes", "schroedinger"]


def burgers():
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    domain = pb.Interval((x, -1, 1)) * pb.TimeInterval(t, 0, 1)
    equation = sp.Eq(u.diff(t) + u * u.diff(x), u.diff(x, 2) / 50)
    return pb.Problem(equation, domain, [pb.Dirichlet(u, 0), pb.Initial(u, -sp.sin(sp.pi * x))])


@pytest.mark.parametrize("name", [*ZOO, "burgers"])
def test_the_residuals_it_trains_on_are_those_of_the_solution(name):
    problem = burgers() if name == "burgers" else getattr(pb.problems, name)()
    solution = fitted(problem, pb.PINN(width=5, adam_iterations=0, lbfgs_iterations=0), interior=25)
    points = Points.sample(problem, interior=25)
    for statement in problem.statements:
        where = points.sets[statement.source]

        def rows(X, normals, form=statement.form):
            state = solution.evaluate(X, [(t.field, t.multi_index) for t in form.terms])
            return np.array(form.residual_function(X, normals, state))

        expected = rows(where.points, where.normals)
        if where.partner is not None:
            expected = expected - rows(where.partner, where.normals)
        if where.weights is not None:
            expected = np.atleast_1d(where.weights @ expected)
        found = next(r for key, r in solution.diagnostics.residuals.items() if key == statement.name)
        assert found.rms == pytest.approx(np.sqrt(np.mean(expected**2)), rel=1e-8, abs=1e-12)
        assert found.rows == len(expected)


def expressions():
    x = pb.coordinates("x")
    u, v = pb.field("u", x), pb.field("v", x)
    f = pb.data("f", np.cosh, x)
    return x, [
        u * u.diff(x) - x * u.diff(x, 2) + sp.besselj(0, x),
        sp.exp(-u) * sp.sin(v) / (2 + sp.cos(x * u)) - f,
        sp.sqrt(1 + u**2) + sp.Abs(v) + sp.tanh(u) * sp.atan(v),
        sp.Piecewise((u**2, x < 0.5), (v, u > 0), (sp.Integer(3) * u, True)),
        sp.Piecewise((u**2, sp.And(x < 0.5, u > 0)), (v, sp.Or(u > 0.1, sp.Not(v > 0))), (u, True)),
        sp.Max(u, v, 0) + sp.Min(u, 0.1) * x**u + 2**v,
        sp.erf(u) + sp.log(2 + u**2) + sp.sinh(v) ** 3 - sp.asin(u / 10),
    ]


def test_a_linear_residual_in_disguise_is_the_linear_one():
    x = pb.coordinates("x")
    u, v = pb.field("u", x), pb.field("v", x)
    form = lower((u + 1) ** 2 - u**2 - 2 * u + x * v - 3, (x,))
    X, value = np.array([[2.0], [5.0]]), torch.tensor([1.0, 10.0])
    residual = residual_evaluator(form, X, None, lambda a: torch.as_tensor(np.array(a)))
    # (u + 1)² − u² − 2u is 1, whatever u.
    assert residual([value]).tolist() == [0.0, 48.0]


@pytest.mark.parametrize("number", range(7))
def test_compiled_residuals_are_those_of_numpy(number):
    x, all_of_them = expressions()
    form = lower(all_of_them[number], (x,))
    rng = np.random.default_rng(number)
    X = rng.uniform(0, 1, (20, 1))
    state = [rng.normal(size=20) for _ in form.terms]
    function = residual_evaluator(form, X, None, lambda a: torch.as_tensor(np.array(a)))
    found = function([torch.tensor(s) for s in state])
    np.testing.assert_allclose(found.numpy(), form.residual_function(X, None, state), rtol=1e-12, atol=1e-14)


def test_functions_that_torch_cannot_train_through_are_named():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    interval = pb.Interval((x, 0, 1))
    problem = pb.Problem(sp.Eq(u.diff(x), sp.besselj(0, u)), interval, [pb.Dirichlet(u, 0, on=interval.left)])
    with pytest.raises(ProblemError, match="no besselj of an unknown"):
        fitted(problem)


def test_measurements_are_weighed_by_their_noise_and_conditions_by_their_weight():
    x = pb.coordinates("x")
    u = pb.field("u", x)

    def loss(weight, noise):
        observed = pb.Observation(u, [[0.25], [0.5]], [1.0, 2.0], noise=noise, weight=weight)
        problem = pb.Problem(sp.Eq(u.diff(x), 0), pb.Interval((x, 0, 1)), [observed])
        method = pb.PINN(width=4, lambda_b=1.0, adam_iterations=0, lbfgs_iterations=0)
        return fitted(problem, method).diagnostics

    plain, heavy, exact = loss(1.0, None), loss(10.0, None), loss(1.0, 0.1)
    both = [d.stages[0].loss for d in (plain, heavy, exact)]
    residuals = list(plain.residuals.values())
    assert both[0] == pytest.approx(residuals[0].rms ** 2 + residuals[1].rms ** 2)
    assert both[1] == pytest.approx(residuals[0].rms ** 2 + 100 * residuals[1].rms ** 2)
    assert both[1] == pytest.approx(both[2])
    # The record is in the units of the measurement, whatever its noise.
    assert list(exact.residuals.values())[1].rms == pytest.approx(residuals[1].rms)


def test_penalties_of_the_paper_weigh_boundary_and_initial_losses():
    problem = pb.problems.diffusion_reaction()

    def first(**penalties):
        d = fitted(problem, pb.PINN(width=4, adam_iterations=0, lbfgs_iterations=0, **penalties)).diagnostics
        return d.stages[0].loss, [r.rms**2 for r in d.residuals.values()]

    for b, i in ((2.0, 5.0), (0.01, 1.0)):
        value, (equation, boundary, initial) = first(lambda_b=b, lambda_i=i)
        assert value == pytest.approx(equation + b * boundary + i * initial)


def test_balanced_losses_are_learned_at_the_same_speed():
    problem = pb.problems.diffusion_reaction()
    _, loss = loss_of(problem)
    rng = np.random.default_rng(0)
    weights = [torch.tensor(rng.normal(size=s), requires_grad=True) for s in ((1, 2, 3), (1, 3), (1, 3, 1), (1, 1))]
    exact = []
    for (residual,) in loss.residuals(weights):
        rows = [torch.autograd.grad(r, weights, retain_graph=True, allow_unused=True) for r in residual]
        exact.append(np.sqrt(np.mean([sum(float((g**2).sum()) for g in row if g is not None) for row in rows])))
    # Ten random probes know the trace to about a third.
    np.testing.assert_allclose(loss.sensitivities(weights, [0]), [exact], rtol=0.5)


# Training


def test_it_learns_a_linear_equation():
    problem = pb.problems.advection()
    solution = fitted(problem, pb.PINN(width=20, adam_iterations=200, lbfgs_iterations=400), interior=40)
    assert solution.true_error() < 0.02
    losses = [stage.loss for stage in solution.diagnostics.stages]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1e-3 * losses[0]


def test_it_learns_a_nonlinear_equation_with_two_fields():
    """u' = v, v' = −sin u: a pendulum, against SciPy."""
    from scipy.integrate import solve_ivp

    t = pb.coordinates("t")
    u, v = pb.field("u", t), pb.field("v", t)
    span = pb.Interval((t, 0, 3))
    conditions = [pb.Dirichlet(u, 2, on=span.left), pb.Dirichlet(v, 0, on=span.left)]
    problem = pb.Problem([sp.Eq(u.diff(t), v), sp.Eq(v.diff(t), -sp.sin(u))], span, conditions)
    solution = fitted(problem, pb.PINN(width=15, adam_iterations=200, lbfgs_iterations=300), interior=40)
    times = np.linspace(0, 3, 20)
    exact = solve_ivp(lambda _, y: [y[1], -np.sin(y[0])], (0, 3), [2, 0], t_eval=times, rtol=1e-10, atol=1e-10).y
    for name, row in zip("uv", exact, strict=True):
        np.testing.assert_allclose(solution(times)[name], row, atol=0.02)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_seed_gives_the_same_network_and_leaves_global_state_alone(dtype):
    method = pb.PINN(width=5, layers=3, adam_iterations=3, lbfgs_iterations=3, dtype=dtype)
    before = torch.random.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
    X = np.linspace(0, 1, 5)
    first, same, other = (fitted(pb.problems.advection(), method, seed=s)(X) for s in (1, 1, 2))
    assert (first == same).all()
    assert not np.allclose(first, other)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1:] == (torch.get_num_threads(), torch.get_default_dtype())


def test_stretched_coordinates_leave_the_training():
    def value(scale):
        x = pb.coordinates("x")
        u = pb.field("u", x)
        interval = pb.Interval((x, 0, scale))
        problem = pb.Problem(sp.Eq(u.diff(x) * scale, 1), interval, [pb.Dirichlet(u, 0, on=interval.left)])
        return fitted(problem, pb.PINN(width=5, adam_iterations=20, lbfgs_iterations=5))(np.array([0.3, 0.8]) * scale)

    np.testing.assert_allclose(value(1000), value(1), rtol=1e-6)


@pytest.mark.parametrize("stop", [0, 25, 50, 75])
def test_an_interrupt_ends_the_training_with_the_best_so_far(stop):
    seen = []

    def progress(iteration, loss):
        seen.append((iteration, loss))
        if iteration >= stop:
            raise KeyboardInterrupt

    method = pb.PINN(width=5, adam_iterations=50, lbfgs_iterations=50)
    solution = fitted(pb.problems.advection(), method, progress=progress)
    assert solution.status == "interrupted"
    assert f"Interrupted after {stop} iterations" in solution.diagnostics.message
    assert seen == [(s.iteration, s.loss) for s in solution.diagnostics.stages]
    assert solution.residual().values().shape == (500,)


def test_a_scale_spreads_the_first_nodes_over_the_domain():
    problem = pb.problems.diffusion_reaction()
    method = pb.PINN(width=500, scale=(12.0, 0.5), adam_iterations=0, lbfgs_iterations=0)
    first = fitted(problem, method).network.layers[0]
    normalised = first.weights * np.ptp(problem.domain.bounds, axis=1)[:, None] / 2
    # Uniform in ± the scale, and each node is zero somewhere in the box.
    np.testing.assert_allclose(np.abs(normalised).max(axis=1), [12.0, 0.5], rtol=0.02)
    assert (np.abs(first.bias) <= np.abs(normalised).sum(axis=0)).all()
    assert first.bias.std() > 1.0
    plain = fitted(problem, pb.PINN(width=500, adam_iterations=0, lbfgs_iterations=0)).network.layers[0]
    assert not plain.bias.any()


def test_a_start_that_varies_as_fast_as_the_solution_learns_it():
    problem = pb.problems.advection()
    errors = []
    for scale in (None, 6.0):
        method = pb.PINN(width=20, scale=scale, lambda_b=1.0, adam_iterations=20, lbfgs_iterations=150)
        errors.append(fitted(problem, method, interior=60).true_error())
    assert errors[1] < 0.5 * errors[0]


def test_training_that_finds_nothing_better_stops_and_says_so():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    interval = pb.Interval((x, 0, 1))
    problem = pb.Problem(sp.Eq(u.diff(x), 0), interval, [pb.Dirichlet(u, 1, on=interval.left)])
    solution = fitted(problem, pb.PINN(width=3, adam_iterations=0, lbfgs_iterations=3000), interior=5)
    assert "no lower loss" in solution.diagnostics.message
    assert solution.diagnostics.stages[-1].iteration < 3000
    assert max(r.max for r in solution.diagnostics.residuals.values()) < 1e-12


def test_a_state_without_a_residual_is_refused():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    interval = pb.Interval((x, 0, 1))
    problem = pb.Problem(sp.Eq(u.diff(x), sp.log(u - 100)), interval, [pb.Dirichlet(u, 101, on=interval.left)])
    with pytest.raises(SolveError, match="not finite at the initial weights"):
        fitted(problem)


# Side by side


def members(problem, iterations, **changes):
    """Networks that differ in all that may differ: width, activation, penalties, points and their number, seed."""
    adam, lbfgs = iterations
    differing = [(5, "tanh", 30, 1.0), (9, "sigmoid", 24, 0.01), (3, "tanh", 28, 1e-4), (9, "tanh", 30, None)]
    return [
        PinnFit(
            pb.PINN(width, activation=psi, lambda_b=b, adam_iterations=adam, lbfgs_iterations=lbfgs, **changes),
            problem,
            Points.sample(problem, interior=interior, seed=seed),
            seed,
        )
        for seed, (width, psi, interior, b) in enumerate(differing)
    ]


@pytest.mark.parametrize("iterations", [(12, 0), (0, 12)])
@pytest.mark.parametrize("name", ["diffusion_reaction", "advection", "neumann_gauge", "periodic_advection", "burgers"])
def test_a_network_trained_among_others_is_the_one_trained_alone(name, iterations):
    problem = burgers() if name == "burgers" else getattr(pb.problems, name)()
    fits = members(problem, iterations)
    X = problem.domain.sample(40)
    for fit, among in zip(fits, fit_together(fits), strict=True):
        alone = fit.method.fit(problem, fit.points, seed=fit.seed)
        for one, other in zip(
            *(s.evaluate(X, [(n, (0,) * X.shape[1]) for n in problem.field_names]) for s in (alone, among)), strict=True
        ):
            np.testing.assert_allclose(other, one, rtol=0, atol=1e-10 * np.abs(one).max())
        assert among.diagnostics.rows == alone.diagnostics.rows
        for key, residual in alone.diagnostics.residuals.items():
            assert among.diagnostics.residuals[key].rms == pytest.approx(residual.rms, rel=1e-9)


def test_minimisations_side_by_side_end_at_their_own_minima():
    scales = torch.tensor([[1.0, 10.0, 1.0], [1.0, 1e3, 30.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    centers = torch.tensor([[0.0, 1.0, 2.0], [3.0, -1.0, 0.5], [0.1, 0.2, 0.3]], dtype=torch.float64)

    def function(x):
        z = x - centers
        return (scales * (z * z + z**4)).sum(1), scales * (2 * z + 4 * z**3)

    state = Lbfgs.start(function, torch.zeros(3, 3, dtype=torch.float64))
    for _ in range(200):
        state.evaluate()
    np.testing.assert_allclose(state.x.numpy(), centers.numpy(), atol=1e-7)
    assert state.stopped.all()


def test_a_long_valley_is_followed_beyond_the_memory():
    """Rosenbrock's function in 20 dimensions, whose minimum is at (1, …, 1); values that are not finite are avoided."""

    def function(x):
        a, b = x[:, 1:] - x[:, :-1] ** 2, 1 - x[:, :-1]
        gradient = torch.zeros_like(x)
        gradient[:, 1:] += 200 * a
        gradient[:, :-1] -= 400 * a * x[:, :-1] + 2 * b
        value = (100 * a**2 + b**2).sum(1)
        return torch.where(x.abs().amax(1) > 2, torch.nan, value), gradient

    state = Lbfgs.start(function, torch.zeros(1, 20, dtype=torch.float64))
    for _ in range(400):
        state.evaluate()
    np.testing.assert_allclose(state.x.numpy(), 1.0, atol=1e-6)


# What comes back


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_parameters_are_counted_as_they_are(layers):
    method = pb.PINN(width=7, layers=layers, adam_iterations=0, lbfgs_iterations=0)
    solution = fitted(pb.problems.maxwell_1d(), method)
    assert solution.network.parameters + solution.weights.size == method.parameters(2, fields=2)


def test_a_saved_network_works_where_there_is_no_torch(tmp_path):
    solution = fitted(pb.problems.poisson_star())
    path = solution.save(tmp_path / "run.pibls")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import pibls as pb\n"
        f"s = pb.load({str(path)!r})\n"
        "x, y = s.problem.domain.coordinates\n"
        "print(s([[0.1, 0.2]])[0], s.derivative('u', x, y)([[0.1, 0.2]])[0], s.true_error(), s.status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    x, y = solution.problem.domain.coordinates
    values = [solution([[0.1, 0.2]])[0], solution.derivative("u", x, y)([[0.1, 0.2]])[0], solution.true_error()]
    assert done.stdout.split() == [*(str(v) for v in values), "fitted"]
    again = pb.load(path)
    assert again.diagnostics == solution.diagnostics


def test_the_torch_module_has_the_values_and_all_layers_as_parameters():
    method = pb.PINN(width=7, adam_iterations=3, lbfgs_iterations=0)
    solution = fitted(pb.problems.maxwell_1d(), method)
    module = solution.to_torch()
    X = solution.problem.domain.sample(10)
    values = module(torch.tensor(X))
    for column, name in enumerate(solution.problem.field_names):
        np.testing.assert_allclose(values[:, column].detach().numpy(), solution(X)[name], atol=1e-13)
    assert sum(p.numel() for p in module.parameters()) == method.parameters(2, fields=2)
    values.sum().backward()
    assert all(p.grad is not None for p in module.parameters())


def test_the_record_tells_the_course_of_the_loss():
    solution = fitted(pb.problems.advection(), pb.PINN(width=5, adam_iterations=30, lbfgs_iterations=10))
    d = solution.diagnostics
    assert [s.iteration for s in d.stages] == [0, 25, 30, 40]
    assert d.rank is None
    assert "rank" not in repr(solution)
    assert "loss" in str(d)
    assert "in 40 iterations" in str(d)
    assert d.settings["width"] == 5


def test_it_can_be_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert fitted(pb.problems.advection()).plot() is not None


# Refusals


@pytest.mark.parametrize(
    ("setting", "bad"),
    [
        ("width", 0),
        ("layers", 0),
        ("adam_iterations", -1),
        ("lbfgs_iterations", 1.5),
        ("learning_rate", 0),
        ("dtype", "float16"),
        ("lambda_b", -1.0),
    ],
)
def test_bad_settings_are_refused(setting, bad):
    with pytest.raises(InputError, match=f"'{setting}' parameter of PINN"):
        pb.PINN(**{setting: bad})


def test_what_it_cannot_do_is_refused_before_training():
    x = pb.coordinates("x")
    u, k = pb.field("u", x), pb.unknown("k")
    interval = pb.Interval((x, 0, 1))
    fixed = [pb.Dirichlet(u, 0, on=interval.left)]
    exact = pb.Problem(sp.Eq(u.diff(x), 1), interval, [pb.Dirichlet(u, 0, on=interval.left, exact=True)])
    inverse = pb.Problem(sp.Eq(u.diff(x), k), interval, [*fixed, pb.Observation(u, [[0.5]], [1.0])])
    with pytest.raises(ProblemError, match="exact=True"):
        fitted(exact)
    with pytest.raises(ProblemError, match=r"unknown parameters.*numbers"):
        fitted(inverse)
    with pytest.raises(FeatureError, match="relu"):
        fitted(pb.problems.poisson_star(), pb.PINN(activation="relu"))
    with pytest.raises(ResourceError, match="Training a PINN"):
        fitted(pb.problems.advection(), pb.PINN(width=100, layers=100), interior=2**18)
    with pytest.raises(InputError, match="coordinates, and the points"):
        TINY.fit(pb.problems.advection(), Points.sample(pb.problems.poisson_star(), interior=9))


def test_progress_must_be_a_function_that_works():
    with pytest.raises(InputError, match=r"'progress' parameter of PINN\.fit must be a function"):
        fitted(pb.problems.advection(), progress=3)

    def broken(iteration, loss):
        raise ZeroDivisionError("oh")

    with pytest.raises(InputError, match="raised ZeroDivisionError: oh"):
        fitted(pb.problems.advection(), progress=broken)


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="'device' parameter"):
        fitted(pb.problems.advection(), device="nowhere")


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install pibls\[torch\]"):
        fitted(pb.problems.advection())
