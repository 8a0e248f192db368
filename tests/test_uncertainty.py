"""How uncertain numbers are: by samples, with the linearised answer beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import sympy as sp

import pibls as pb

x, k, q = pb.coordinates("x"), pb.parameter("k"), pb.parameter("q")
T = pb.field("T", x)
bar = pb.Problem(sp.Eq(-k * T.diff(x, 2), q), pb.Interval((x, 0, 1)), [pb.Dirichlet(T, 0)])
middle = T.subs(x, 0.5)  # q/(8 k)


def test_a_linear_number_has_the_deviation_of_its_parameter_by_either_way() -> None:
    found = pb.uncertainty(bar.at(k=2), middle, q=(16, 2), samples=32, tol=1e-4)
    assert found.central == pytest.approx(1.0, abs=1e-6)
    assert found.linear == pytest.approx(2 / 16, abs=1e-6)
    assert found.deviation == pytest.approx(2 / 16, rel=0.1)
    assert found.values == pytest.approx(found.inputs["q"] / 16, abs=1e-6)
    assert found.shares == {"q": 1.0}
    assert found.note == ""
    assert "deviation 0.125 (q 100%)" in str(found)


def test_a_number_that_bends_is_sampled_and_the_note_warns() -> None:
    found = pb.uncertainty(bar, middle, k=scipy.stats.uniform(0.5, 3), q=(16, 1), samples=32, tol=1e-4, executor=1)
    assert found.values == pytest.approx(found.inputs["q"] / (8 * found.inputs["k"]), abs=1e-5)
    assert found.linear == pytest.approx(np.hypot(3 / np.sqrt(12) / 2, 1 / 16), rel=1e-4)
    assert found.deviation > 1.5 * found.linear
    assert "differs from the sampled one" in found.note
    assert "Use the sampled one" in found._repr_html_()
    low, high = found.interval
    assert low < found.mean < high


def test_samples_without_a_solution_do_not_count_and_are_told() -> None:
    def above(solution: pb.Solution) -> float:
        return solution([0.5])[0] if solution([0.5])[0] > 1 / 16 else np.nan

    two = pb.uncertainty(bar.at(q=1), above, k=(2, 0.1), samples=8, tol=1e-4, executor=1)
    assert np.isnan(two.values).sum() == 4
    assert "4 of 8 samples have no number (the quantity is not finite)" in two.note


def test_samples_are_kept_told_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    asked = {"k": (2, 0.1), "samples": 4, "tol": 1e-4, "executor": 1, "folder": tmp_path}
    first = pb.uncertainty(bar.at(q=16), middle, progress=lambda state: told.append(str(state)), **asked)
    assert len(list(tmp_path.glob("*.pibls"))) == 4
    assert told[-1] == "4/4: sample 4: converged"
    monkeypatch.setattr("pibls.sweeps.solving.solve", None)  # nothing is solved again
    again = pb.uncertainty(bar.at(q=16), middle, **asked)
    assert (again.values == first.values).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"k": (1, 0.1)}, "every open parameter, k, q, and got k"),
        ({"k": 3, "q": (1, 1)}, "'k' parameter of uncertainty must be a mean and a standard deviation"),
        ({"k": (1, -1), "q": (1, 1)}, "'k' parameter of uncertainty must be"),
        ({"k": scipy.stats.cauchy(), "q": (1, 1)}, "finite mean"),
        ({"k": (1, 1), "q": (1, 1), "samples": 1}, "at least 2"),
    ],
)
def test_distributions_that_make_no_sense_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(pb.PiblsError, match=words):
        pb.uncertainty(bar, middle, **given)
