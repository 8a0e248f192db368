"""Unknown numbers and functions: their settings, where they may stand, and what is refused."""

import pickle

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import decode, encode
from pibls.errors import PiblsError
from pibls.problem import Unknown

x, y, t = pb.coordinates("x y t")
u = pb.field("u", x, t)
SLAB = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
DATA = pb.Observation(u, [[0.3, 0.5], [0.6, 0.5]], [0.2, 0.1])
WALLS = [pb.Dirichlet(u, 0), pb.Initial(u, sp.sin(sp.pi * x))]


def heat(k, *conditions, source=0):
    return pb.Problem(sp.Eq(u.diff(t), k * u.diff(x, 2) + source), SLAB, [*(conditions or WALLS), DATA])


def test_settings_are_kept():
    k = pb.unknown("k", start=2, bounds=(0, np.inf), prior=(1, 0.5))
    assert k.settings == (2.0, (0.0, None), (1.0, 0.5))
    assert k.positive
    assert not pb.unknown("k", bounds=(-1, 3)).positive
    assert not pb.unknown("k", bounds=(None, 3)).positive
    assert pb.unknown("k", bounds=(-np.inf, None)).bounds is None
    assert pickle.loads(pickle.dumps(k)).settings == k.settings


def test_an_expression_keeps_the_settings_of_its_own_symbol():
    """SymPy keeps expressions it has made: an earlier symbol of the same name must not come back in them."""
    for start in (1.0, 2.0, None):
        k = pb.unknown("k", start=start)
        product = 3 * k * u.diff(x)
        assert [s.start for s in product.free_symbols if isinstance(s, Unknown)] == [start]
        a = pb.field("a", x, prior=None if start is None else pb.Smooth(length=start))
        (found,) = (a * 2 + 1).atoms(type(a))
        assert found.prior == (None if start is None else pb.Smooth(length=start))


@pytest.mark.parametrize(
    "settings",
    [{}, {"start": 0.1}, {"bounds": (None, 3.0)}, {"start": 1 / 3, "bounds": (0, 1), "prior": (0.5, 1e-300)}],
)
def test_unknown_numbers_are_stored(settings):
    k = pb.unknown("k", **settings)
    assert decode(encode(k * u), (x, t)) == k * u


@pytest.mark.parametrize(
    "settings", [{"prior": pb.Smooth()}, {"prior": pb.Smooth(1, 0.3), "start": x**2}, {"start": 2}]
)
def test_unknown_functions_are_stored(settings):
    a = pb.field("a", x, **settings)
    assert decode(encode(a * u.diff(x)), (x, t)) == a * u.diff(x)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pb.unknown("k", start=np.nan), "'start' parameter of unknown 'k' must be a finite real number"),
        (lambda: pb.unknown("k", start="1"), "finite real number"),
        (lambda: pb.unknown("k", start=3, bounds=(0, 1)), r"start of unknown 'k', 3, is outside its bounds \(0, 1\)"),
        (lambda: pb.unknown("k", start=-1, bounds=(0, None)), r"outside its bounds \(0, ∞\)"),
        (lambda: pb.unknown("k", bounds=(1, 1)), "leaves no room"),
        (lambda: pb.unknown("k", bounds=(2, 1)), "leaves no room"),
        (lambda: pb.unknown("k", bounds=(np.nan, 1)), "finite real number"),
        (lambda: pb.unknown("k", bounds=(np.inf, None)), "finite real number"),
        (lambda: pb.unknown("k", bounds=3), "two numbers, the smaller first"),
        (lambda: pb.unknown("k", prior=1), "a mean and a standard deviation"),
        (lambda: pb.unknown("k", prior=(1, 0)), "above 0"),
        (lambda: pb.unknown("k", prior=(1, -1)), "above 0"),
        (lambda: pb.unknown("k", prior=(np.nan, 1)), "finite real number"),
        (lambda: pb.unknown("k", prior=(-1, 1), bounds=(0, None)), "mean of the prior of unknown 'k'"),
        (lambda: pb.Smooth(size=0), "above 0"),
        (lambda: pb.Smooth(length=np.nan), "above 0"),
        (lambda: pb.field("a", x, prior=1.0), r"must be pibls.Smooth\(\)"),
        (lambda: pb.field("a", x, start=y), r"an expression of \(x,\)"),
        (lambda: pb.field("a", x, start=np.inf), "finite number"),
        (lambda: pb.field("a", x, start=u), "an expression of"),
    ],
)
def test_bad_settings_are_refused(make, words):
    with pytest.raises(PiblsError, match=words):
        make()


K, S, W, M = (pb.unknown(name) for name in "kswm")


@pytest.mark.parametrize(
    ("problem", "names"),
    [
        (heat(K), "k"),
        (heat(1, source=K * sp.exp(-(((x - S) / W) ** 2))), "ksw"),
        (heat(1, pb.Robin(u, K, 1, M), pb.Initial(u, 0)), "km"),
        (heat(1, pb.Dirichlet(u, sp.sin(K * t)), pb.Initial(u, S * sp.sin(sp.pi * x))), "ks"),
        (heat(u**M), "m"),
        (heat(1, source=sp.Heaviside(x - S)), "s"),
    ],
)
def test_unknown_numbers_may_stand_anywhere(problem, names):
    assert [symbol.name for symbol in problem.parameters] == list(names)
    assert not problem.is_linear
    known = dict.fromkeys(problem.parameters, 0.3)
    equations = [e.xreplace(known) for e in problem.equations]
    conditions = [
        pb.Condition(c.equation.xreplace(known), c.on) if isinstance(c, pb.Condition) else c for c in problem.conditions
    ]
    forward = pb.Problem(equations, problem.domain, conditions)
    X = SLAB.sample(20)
    for lowered, told in zip(problem.statements, forward.statements, strict=True):
        state = {(term.field, term.multi_index): 0.4 + 0.1 * i for i, term in enumerate(lowered.form.terms)}
        values = {term.slot: state[term.field, term.multi_index] for term in lowered.form.terms}
        at = dict(zip((x, t), X[0].tolist(), strict=True))
        normals = {s: 1.0 for s in lowered.form.residual.free_symbols if str(s).startswith("n_")}
        found = float(lowered.form.residual.subs({**values, **known, **at, **normals}))
        slots = {term.slot: state[term.field, term.multi_index] for term in told.form.terms}
        assert found == pytest.approx(float(told.form.residual.subs({**slots, **at, **normals})), abs=1e-12)


class TestFunctions:
    f = pb.field("f", x)
    a = pb.field("a", x, t)

    def test_a_coefficient_is_what_has_the_lowest_derivatives(self):
        problem = pb.Problem(sp.Eq(u.diff(t), (self.a * u.diff(x)).diff(x)), SLAB, [*WALLS, DATA])
        assert problem.unknown_functions == (self.a,)
        assert set(problem.fields) == {u, self.a}

    def test_fewer_coordinates_mark_a_coefficient(self):
        problem = heat(self.f)
        assert problem.unknown_functions == (self.f,)
        (coefficient,) = (term for term in problem.statements[0].form.terms if term.field == "f")
        assert coefficient.multi_index == (0, 0)

    def test_an_initial_or_boundary_function(self):
        g = pb.field("g", t, prior=pb.Smooth())
        problem = heat(1, pb.Dirichlet(u, g), pb.Initial(u, self.f))
        assert problem.unknown_functions == (g, self.f)

    def test_a_prior_marks_one_against_the_order(self):
        rough = pb.field("b", x, t, prior=pb.Smooth())
        equation = sp.Eq(u.diff(x), rough.diff(x, 2))
        assert pb.Problem(equation, SLAB, [*WALLS, DATA]).unknown_functions == (rough,)

    def test_a_system_has_none(self):
        assert pb.problems.maxwell_1d().unknown_functions == ()

    def test_a_tie_names_the_remedy(self):
        with pytest.raises(PiblsError, match=r"same order.*prior=pibls.Smooth\(\)"):
            pb.Problem(sp.Eq(u.diff(x), self.a.diff(x)), SLAB, [*WALLS, DATA])

    def test_without_data_they_are_refused(self):
        equation = sp.Eq(u.diff(t), self.f * u.diff(x, 2))
        with pytest.raises(PiblsError, match=r"field f\(x\).*declare it as field\('f', x, t\)"):
            pb.Problem(equation, SLAB, WALLS)
        with pytest.raises(PiblsError, match="without an equation"):
            pb.Problem(sp.Eq(u.diff(t), self.a * u.diff(x, 2)), SLAB, WALLS)

    def test_foreign_coordinates_are_refused(self):
        with pytest.raises(PiblsError, match="does not have the domain's coordinates"):
            heat(pb.field("f", y))


class TestNames:
    def test_two_settings_of_one_name(self):
        with pytest.raises(PiblsError, match="'k' stands for two unknown numbers"):
            heat(pb.unknown("k", start=1), source=pb.unknown("k", start=2))
        a, b = pb.field("a", x, prior=pb.Smooth()), pb.field("a", x, prior=pb.Smooth(1))
        with pytest.raises(PiblsError, match=r"'a' stands for two fields.*priors"):
            heat(a, source=b)

    def test_one_name_for_a_number_and_a_field(self):
        with pytest.raises(PiblsError, match="'u' stands for an unknown number and for something else"):
            heat(pb.unknown("u"))
        with pytest.raises(PiblsError, match="'t' stands for an unknown number"):
            heat(pb.unknown("t"))


class TestTruth:
    f = pb.field("f", x)
    equation = sp.Eq(u.diff(t), K * f * u.diff(x, 2))

    def make(self, **known):
        return pb.Problem(self.equation, SLAB, [*WALLS, DATA], **known)

    def test_it_is_kept_by_name(self):
        problem = self.make(truth={K: sp.Rational(1, 4), "f": 1 + x})
        assert problem.truth == {"k": 0.25, "f": 1 + x}
        assert problem.exact is None

    def test_exact_solutions_take_functions_from_it(self):
        problem = self.make(exact={u: x * t}, truth={self.f: 1 + x})
        assert problem.exact == {"u": x * t, "f": 1 + x}
        assert problem.exact_values([[0.5, 0.5]])["f"] == [1.5]

    @pytest.mark.parametrize(
        ("truth", "words"),
        [
            ({"c": 1.0}, r"unknown numbers and functions of the problem, which are \['f', 'k'\]"),
            ({u: x}, "unknown numbers and functions"),
            ({K: x}, "true value of k must be a number"),
            ({K: np.nan}, "finite"),
            ({"f": y}, r"true value of f must be an expression of \(x, t\)"),
            ({}, "unknown numbers and functions"),
            (3, "unknown numbers and functions"),
        ],
    )
    def test_what_is_no_truth_is_refused(self, truth, words):
        with pytest.raises(PiblsError, match=words):
            self.make(truth=truth)


def test_printing_names_unknowns_and_what_is_known():
    k = pb.unknown("k", start=1, bounds=(0, 10), prior=(1, 0.5))
    f = pb.field("f", x, prior=pb.Smooth(length=0.2), start=1 + x)
    problem = heat(k, pb.Dirichlet(u, 0), pb.Initial(u, f))
    told = str(problem)
    assert told.startswith("Find u(x, t), f(x), k with")
    assert "unknown: start 1, 0 to 10, prior 1 ± 0.5" in told
    assert "unknown function: smooth (length 0.2), start x + 1" in told
    assert "k" in repr(problem)
