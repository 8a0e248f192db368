"""Linear forms Σ_α c_α(x) ∂^α of all nodes at once: the hot path of the library.

Features, F = ψ(xW + b). Since ∂^α F = ψ⁽ᵏ⁾(z) ∘ W^α with k = |α|, all terms of one order share one factor
S_k = Σ_{|α|=k} c_α W^α, and a Laplacian costs one multiplication per node.

Enhancement nodes, E = φ(y) with y = F Wᵉ + bᵉ. Only the β that occur in products of two or more factors need their
own matrix product ∂^β y = (∂^β F) Wᵉ; the terms linear in y of a whole form share one, because
Σ_α c_α φ'(y) ∂^α y = φ'(y) ∘ ((Σ_α c_α ∂^α F) Wᵉ). The plane's Laplacian takes four: y, y_x, y_y and Δy. They are
stacked into a single product per chunk of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from array_api_compat import array_namespace, device

from pibls.features.activations import Activation
from pibls.features.arrays import Array, MultiIndex
from pibls.features.taylor import added, composed, factors

Form: TypeAlias = Mapping[MultiIndex, float | Array]
"""Coefficient of each derivative: a number, or a column (n, 1) with one entry per point."""

# A temporary of one chunk stays within a core's second-level cache; a GPU instead needs enough rows to be busy.
_CHUNK_BYTES_CPU = 2 * 2**20
_CHUNK_BYTES_GPU = 64 * 2**20


class Layer(NamedTuple):
    """All groups of one kind side by side: neighbours with the same activation form one run of columns."""

    weights: Array
    bias: Array
    runs: tuple[tuple[Activation, slice], ...]


class _OrderTerm(NamedTuple):
    """S_k of one order: a constant part (a row; a number at order 0) and one that varies over the points; or None."""

    order: int
    constant: Array
    coefficients: Array
    powers: Array

    def factor(self, rows: slice, columns: slice) -> Array:
        if self.coefficients is None:
            return self.constant if self.order == 0 else self.constant[columns]
        varying = self.coefficients[rows, :]
        if self.powers is not None:
            varying = varying @ self.powers[:, columns]
        return varying if self.constant is None else varying + self.constant[columns]


@dataclass(frozen=True)
class Plan:
    """The computations for a list of forms, planned once before the loop over chunks of rows.

    ``blocks`` are the combinations of features to be multiplied by Wᵉ: first F itself, then the factors ∂^β F, then
    the linear parts of those forms whose terms are merged (``merged``: form → block).
    """

    forms: tuple[Form, ...]
    blocks: tuple[tuple[_OrderTerm, ...], ...]
    factors: Mapping[MultiIndex, int]
    merged: Mapping[int, int]
    direct: Mapping[int, tuple[_OrderTerm, ...]]
    feature_orders: frozenset[int]
    enhancement_orders: frozenset[int]


def plan(forms: Sequence[Form], features: Layer, enhanced: bool) -> Plan:
    """Choose the matrix products and prepare the factors S_k for these forms."""
    blocks: list[Form] = []
    needed: tuple[MultiIndex, ...] = ()
    merged: dict[int, int] = {}
    zero = (0,) * features.weights.shape[0]
    if enhanced and forms:
        linear = [{alpha: c for alpha, c in form.items() if any(alpha)} for form in forms]
        needed = factors(alpha for form in linear for alpha in form)
        extra = sorted({alpha for form in linear for alpha in form} - set(needed))
        to_merge = [i for i, form in enumerate(linear) if not form.keys() <= set(needed)]
        if len(extra) <= len(to_merge):
            needed, to_merge = (*needed, *extra), []
        blocks = [{zero: 1.0}, *({beta: 1.0} for beta in needed), *(linear[i] for i in to_merge)]
        merged = {i: 1 + len(needed) + j for j, i in enumerate(to_merge)}
    combinations = tuple(_combination(block, features.weights) for block in blocks)
    direct = {i: _combination(form, features.weights) for i, form in enumerate(forms) if i not in merged}
    highest = max((sum(alpha) for form in forms for alpha in form), default=0)
    return Plan(
        forms=tuple(forms),
        blocks=combinations,
        factors={beta: 1 + j for j, beta in enumerate(needed)},
        merged=merged,
        direct=direct,
        feature_orders=frozenset(term.order for terms in (*combinations, *direct.values()) for term in terms),
        enhancement_orders=frozenset(range(1, highest + 1)) | {0 for form in forms if zero in form},
    )


def _combination(form: Form, weights: Array) -> tuple[_OrderTerm, ...]:
    """Collect the terms of a form by order: S_k = Σ_{|α|=k} c_α W^α."""
    xp = array_namespace(weights)
    terms = []
    for order in sorted({sum(alpha) for alpha in form}):
        own = {alpha: c for alpha, c in form.items() if sum(alpha) == order}
        fixed = [c * _power(weights, alpha) if order else c for alpha, c in own.items() if isinstance(c, float)]
        varying = {alpha: c for alpha, c in own.items() if not isinstance(c, float)}
        columns = xp.concat(list(varying.values()), axis=1) if varying else None
        powers = xp.stack([_power(weights, alpha) for alpha in varying]) if varying and order else None
        terms.append(_OrderTerm(order, added(fixed) if fixed else None, columns, powers))
    return tuple(terms)


def _power(weights: Array, alpha: MultiIndex) -> Array:
    """Return the row W^α: the product over the axes of the weights to the power α_i."""
    powers = (weights[axis, :] ** exponent for axis, exponent in enumerate(alpha) if exponent)
    return math.prod(powers, start=array_namespace(weights).ones_like(weights[0, :]))


def contracted(X: Array, features: Layer, indices: Sequence[MultiIndex], weights: Array) -> dict[MultiIndex, Array]:
    """Return derivatives of functions Σ_m w_m F_m at centred points: (n, k) each, for weights (M, k)."""
    xp = array_namespace(X)
    orders = sorted({sum(alpha) for alpha in indices})
    own = {order: [alpha for alpha in indices if sum(alpha) == order] for order in orders}
    inputs = X @ features.weights + features.bias
    totals: dict[int, Array] = {}
    for psi, columns in features.runs:
        slopes = psi.derivatives(inputs[:, columns], orders)
        for order, alphas in own.items():
            powers = [_power(features.weights, alpha)[columns, None] * weights[columns, :] for alpha in alphas]
            term = slopes[order] @ xp.concat(powers, axis=1)
            totals[order] = totals[order] + term if order in totals else term
    width = weights.shape[1]
    return {
        alpha: totals[order][:, i * width : (i + 1) * width]
        for order, alphas in own.items()
        for i, alpha in enumerate(alphas)
    }


def row_chunks(rows: int, width: int, like: Array) -> int:
    """Return how many rows of ``width`` numbers to treat at a time on the device of ``like``."""
    on_cpu = getattr(device(like), "type", device(like)) == "cpu"
    limit = _CHUNK_BYTES_CPU if on_cpu else _CHUNK_BYTES_GPU
    return max(1, min(rows, limit // (8 * width)))


def slices(rows: int, step: int) -> list[slice]:
    """Cut a range of rows into pieces of ``step`` rows."""
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


@dataclass(frozen=True)
class Filler:
    """Writes the forms of a plan at the centred points X into ``out``, a batch of chunks of rows at a time.

    Matrix products run over a whole batch, so that their library can use all its threads; the work per entry in
    between runs chunk by chunk, in the cache, through ``each`` (``map``, or that of a pool of threads).
    """

    plan: Plan
    X: Array
    features: Layer
    enhancement: Layer | None
    out: Sequence[Array]

    def run(self, step: int, batch: int, each: Callable[..., Iterable[None]]) -> None:
        """Treat ``batch`` chunks of ``step`` rows at a time."""
        xp = array_namespace(self.X)
        blocks = len(self.plan.blocks)
        width = self.features.weights.shape[1]
        stack = xp.empty((blocks * batch * step, width), dtype=self.X.dtype, device=device(self.X))
        for span in slices(self.X.shape[0], batch * step):
            inputs = self.X[span, :] @ self.features.weights
            chunks = slices(inputs.shape[0], step)
            rows = [slice(span.start + chunk.start, span.start + chunk.stop) for chunk in chunks]
            pieces = [stack[blocks * chunk.start : blocks * chunk.stop, :] for chunk in chunks]
            list(each(self._features, rows, [inputs[chunk, :] for chunk in chunks], pieces))
            if self.enhancement is not None:
                products = stack[: blocks * inputs.shape[0], :] @ self.enhancement.weights
                pieces = [products[blocks * chunk.start : blocks * chunk.stop, :] for chunk in chunks]
                list(each(self._enhancement, rows, pieces))

    def _blocks(self, rows: slice, piece: Array) -> list[Array]:
        count = rows.stop - rows.start
        return [piece[j * count : (j + 1) * count, :] for j in range(len(self.plan.blocks))]

    def _features(self, rows: slice, inputs: Array, piece: Array) -> None:
        """Write the feature columns of every form, and into ``piece`` the factor of Wᵉ."""
        blocks = self._blocks(rows, piece)
        inputs += self.features.bias
        for psi, columns in self.features.runs:
            derivatives = psi.derivatives(inputs[:, columns], self.plan.feature_orders)
            for block, terms in zip(blocks, self.plan.blocks, strict=True):
                block[:, columns] = _sum_orders(terms, derivatives, rows, columns)
            for i, terms in self.plan.direct.items():
                self.out[i][rows, columns] = _sum_orders(terms, derivatives, rows, columns)
        for i, j in self.plan.merged.items():
            identity = _coefficient(self.plan.forms[i], (0,) * self.X.shape[1], rows)
            value = blocks[j] if identity is None else blocks[j] + _scaled(blocks[0], identity)
            self.out[i][rows, : inputs.shape[1]] = value

    def _enhancement(self, rows: slice, piece: Array) -> None:
        """Write the enhancement columns of every form, from the products in ``piece``."""
        assert self.enhancement is not None
        blocks = self._blocks(rows, piece)
        blocks[0] += self.enhancement.bias
        first = self.features.weights.shape[1]
        for phi, columns in self.enhancement.runs:
            target = slice(first + columns.start, first + columns.stop)
            values = [block[:, columns] for block in blocks]
            derivatives = phi.derivatives(values[0], self.plan.enhancement_orders)
            for i, column in enumerate(_enhanced_forms(self.plan, derivatives, values, rows)):
                self.out[i][rows, target] = column


def _sum_orders(terms: Sequence[_OrderTerm], slopes: Mapping[int, Array], rows: slice, columns: slice) -> Array | float:
    """Σ_k ψ⁽ᵏ⁾(z) ∘ S_k; a form without terms is zero."""
    return added([_scaled(slopes[term.order], term.factor(rows, columns)) for term in terms])


def _enhanced_forms(
    todo: Plan, derivatives: Mapping[int, Array], values: Sequence[Array], rows: slice
) -> Iterator[Array | float]:
    """Yield each form over the enhancement nodes, from φ⁽ᵏ⁾(y) and the products ∂^β y of the plan's blocks."""
    y = {beta: values[j] for beta, j in todo.factors.items()}
    curved = {
        alpha: composed(alpha, derivatives, y, 2)
        for alpha in {alpha for form in todo.forms for alpha in form if sum(alpha) > 1}
    }
    for i, form in enumerate(todo.forms):
        terms, slopes = [], []
        for alpha in form:
            c = _coefficient(form, alpha, rows)
            if not any(alpha):
                terms.append(_scaled(derivatives[0], c))
                continue
            if i not in todo.merged:
                slopes.append(_scaled(y[alpha], c))
            if alpha in curved:
                terms.append(_scaled(curved[alpha], c))
        if i in todo.merged:
            slopes.append(values[todo.merged[i]])
        if slopes:
            terms.append(derivatives[1] * added(slopes))
        yield added(terms)


def _coefficient(form: Form, alpha: MultiIndex, rows: slice) -> float | Array | None:
    c = form.get(alpha)
    return c if c is None or isinstance(c, float) else c[rows, :]


def _scaled(array: Array, factor: float | Array) -> Array:
    return array if isinstance(factor, float) and factor == 1.0 else array * factor
