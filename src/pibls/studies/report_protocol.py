"""Tables of the protocol: search spaces and measures of error."""

from __future__ import annotations

import math
from typing import Any

from pibls.studies.grids import (
    FINAL_TRAINING,
    QUICK_PINN,
    SEARCH_TRAINING,
    SPACE_SCALES,
    TIME_SCALES,
    TRAINED_SPACE_SCALES,
    TRAINED_TIME_SCALES,
)
from pibls.studies.published import METHODS, Published
from pibls.studies.report_accuracy import METRIC_NAMES
from pibls.studies.report_ledger import label
from pibls.studies.report_table import Entry, Table, text

__all__ = ["metrics_table", "scale_words", "space_tables", "training_words"]

_DEFINITIONS = {
    "mse": "Σ(ũᵢ − uᵢ)² / N",
    "rmse": "√(Σ(ũᵢ − uᵢ)² / N)",
    "mae": "Σ|ũᵢ − uᵢ| / N",
    "relative_mse": "Σ(ũᵢ − uᵢ)² / Σuᵢ²",
    "relative_rmse": "√Σ(ũᵢ − uᵢ)² / √Σuᵢ², the relative L² error",
    "relative_mae": "Σ|ũᵢ − uᵢ| / Σ|uᵢ|",
    "linf": "max|ũᵢ − uᵢ|",
    "relative_linf": "max|ũᵢ − uᵢ| / max|uᵢ|",
    "r2": "1 − Σ(ũᵢ − uᵢ)² / Σ(uᵢ − ū)²",
}


# Settings under their names in this library, and the letters of the paper.
_LETTERS = {
    "feature_groups": "N<sub>c</sub>",
    "feature_nodes": "p",
    "enhancement_nodes": "q",
    "nodes": "N<sub>h</sub>",
    "width": "N<sub>h</sub>",
    "layers": "L<sub>h</sub>",
    "lambda_b": "λ<sub>b</sub>",
    "lambda_i": "λ<sub>I</sub>",
    "lambda_reg": "λ<sub>reg</sub>",
    "activation": "σ",
}
_SPACES = {
    "advection": ("2", "advection"),
    "poisson_star": ("3", "Poisson"),
    "diffusion_reaction": ("4", "diffusion–reaction"),
}


def space_tables(published: Published) -> tuple[Table, ...]:
    """Return the search spaces of all methods, a table per equation."""
    tables = []
    for problem, (table, words) in _SPACES.items():
        rows = []
        for method in METHODS:
            space = published.space(problem, method)
            count = math.prod(len(values) for values in space.values())
            listed = "; ".join(f"{_LETTERS[name]} ∈ {{{_listed(values)}}}" for name, values in space.items())
            rows.append((*text(label(method)), Entry(listed, kind="words"), Entry(str(count))))
        heads = (text("method", "search space", "combinations"),)
        tables.append(Table(f"table-{table}", f"Table {table}. Search space, {words}", heads, tuple(rows)))
    return tuple(tables)


def _listed(values: list[Any]) -> str:
    """Return values as the paper writes them; a long run by its ends."""
    if len(values) > 5:
        return f"{values[0]}, {values[1]}, …, {values[-1]}"
    return ", ".join(value if isinstance(value, str) else _power(value) for value in values)


def _power(value: float) -> str:
    """Return a number, a small one as a power of ten.

    >>> _power(0.01), _power(13)
    ('1e-2', '13')
    """
    return f"1e{round(math.log10(value))}" if value < 0.1 else f"{value:g}"


def scale_words() -> str:
    """Return what the paper leaves open about its random weights, and what was done."""
    space, time = (", ".join(f"{value:g}" for value in values) for values in (SPACE_SCALES, TIME_SCALES))
    return (
        "The paper does not say how its random weights are drawn, and their spread decides more than anything that it "
        "searches. Weights act on coordinates normalised to [−1, 1] and are uniform in ± a scale. The scale is chosen "
        "first, by the same cross-validation, for every activation with the widest network of the space, among "
        f"{space} in space and {time} in time; then all of the paper's settings are searched at that scale."
    )


def training_words() -> str:
    """Return how a PINN is trained and searched in either profile."""
    space, time = (
        ", ".join(f"{value:g}" for value in values) for values in (TRAINED_SPACE_SCALES, TRAINED_TIME_SCALES)
    )
    lengths = {
        profile: " and ".join(
            f"{training['adam_iterations']} + {training['lbfgs_iterations']}"
            for training in (SEARCH_TRAINING[profile], FINAL_TRAINING[profile])
        )
        for profile in ("quick", "full")
    }
    reduced = "; ".join(f"{_LETTERS[name]} ∈ {{{_listed(list(values))}}}" for name, values in QUICK_PINN.items())
    return (
        "A PINN is trained in double precision on all points at once, by Adam and then by L-BFGS with a line search "
        f"for the strong Wolfe conditions: {lengths['full']} iterations in the search and in the final fit of the full "
        f"profile. The quick profile trains {lengths['quick']} iterations and searches only {reduced}, other "
        "penalties at 1. The first weights are drawn like those of a broad network, because training does not make up "
        f"for a start that varies too slowly; their scale is chosen likewise, among {space} in space and {time} in "
        "time, at one width."
    )


def metrics_table() -> Table:
    """Return the definitions of the nine measures of error."""
    rows = tuple(
        (*text(METRIC_NAMES[key]), *text(words), Entry(f"<code>{key}</code>", kind="words"))
        for key, words in _DEFINITIONS.items()
    )
    caption = "Table 5. Measures of error: exact values uᵢ with mean ū, predicted values ũᵢ, at N points"
    return Table("table-5", caption, (text("measure", "definition", "name in the files"),), rows)
