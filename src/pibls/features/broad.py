"""The broad network: groups of random feature nodes, and enhancement nodes on top of all of them.

Its nodes are fixed. Everything the rest of the library asks of it is linear in the nodes: values of a linear
differential form of every node at given points, one column per node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Self

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array, to_device

from pibls.checks import check_integer, check_points, shorten
from pibls.errors import FeatureError
from pibls.features.activations import Activation, activation
from pibls.features.arrays import Array, MultiIndex, check_multi_index, float_array, same_home
from pibls.features.forms import Filler, Form, Layer, contracted, plan, row_chunks
from pibls.features.reduction import Reduction


@dataclass(frozen=True, eq=False)
class _Group:
    """Nodes ψ(x W + b) of one activation; weights have one row per input and one column per node."""

    activation: Activation
    weights: Array
    bias: Array

    def __post_init__(self) -> None:
        owner = type(self).__name__
        weights = float_array("weights", self.weights, owner, (None, None))
        bias = float_array("bias", self.bias, owner, (weights.shape[1],))
        if not same_home(weights, bias):
            raise FeatureError(
                f"The 'weights' and 'bias' of {owner} must belong to one array library and one device. "
                f"Got {type(weights).__name__} and {type(bias).__name__}. Convert both before building the group."
            )
        object.__setattr__(self, "activation", activation(self.activation))
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "bias", bias)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.bias.shape[0])

    def to(self, asarray: Callable[[Array], Array]) -> Self:
        """Return the same group with every array passed through ``asarray``."""
        return type(self)(self.activation, asarray(self.weights), asarray(self.bias))


@dataclass(frozen=True, eq=False)
class FeatureGroup(_Group):
    """Feature nodes F = ψ((X − center) W + b), with W (d, p) in the units of the coordinates.

    >>> FeatureGroup("sin", [[1.0, 2.0]], [0.0, 0.5]).nodes
    2
    """


@dataclass(frozen=True, eq=False)
class EnhancementGroup(_Group):
    """Enhancement nodes E = φ(F Wᵉ + bᵉ) on top of all P feature nodes F of the network, with Wᵉ (P, q).

    >>> EnhancementGroup("tanh", [[0.3], [0.4]], [0.0]).nodes
    1
    """


@dataclass(frozen=True, eq=False)
class BroadNetwork:
    """Feature groups and enhancement groups: M nodes G(x) with exact derivatives of any order.

    All arrays belong to one array library and device; points and coefficients are brought there, and results stay
    there. The ``center`` is subtracted from the coordinates, usually the middle of the domain. With a ``reduction`` the
    nodes take the reduced coordinates of what is left.

    >>> net = BroadNetwork([0.0], [FeatureGroup("sin", [[1.0, 2.0]], [0.0, 0.0])])
    >>> net.combine([[0.0]], [{(1,): 1.0, (0,): 5.0}])
    [array([[1., 2.]])]
    """

    center: Array
    features: tuple[FeatureGroup, ...]
    enhancement: tuple[EnhancementGroup, ...] = ()
    reduction: Reduction | None = None

    def __post_init__(self) -> None:
        center = float_array("center", self.center, "BroadNetwork", (None,))
        object.__setattr__(self, "center", center)
        for name, kind in (("features", FeatureGroup), ("enhancement", EnhancementGroup)):
            groups = getattr(self, name)
            if not isinstance(groups, Sequence) or not all(isinstance(group, kind) for group in groups):
                raise FeatureError(
                    f"The '{name}' of BroadNetwork must be a sequence of {kind.__name__} objects. "
                    f"Got {shorten(groups)}."
                )
            object.__setattr__(self, name, tuple(groups))
        if not self.features:
            raise FeatureError("The 'features' of BroadNetwork must hold at least one FeatureGroup. Got none.")
        inputs, what = self.dimension, "coordinates of 'center'"
        if self.reduction is not None:
            if self.reduction.dimension != self.dimension or not same_home(self.reduction.weights, center):
                raise FeatureError(
                    f"The 'reduction' of BroadNetwork must take the {self.dimension} coordinates of 'center', in its "
                    f"array library. Got one of {self.reduction.dimension} coordinates."
                )
            inputs, what = self.reduction.size, "coordinates of 'reduction'"
        self._check_groups("features", self.features, inputs, what)
        self._check_groups("enhancement", self.enhancement, self.feature_nodes, "feature nodes of the network")

    def _check_groups(self, name: str, groups: Sequence[_Group], inputs: int, what: str) -> None:
        for i, group in enumerate(groups):
            if group.weights.shape[0] != inputs:
                raise FeatureError(
                    f"The weights of {name}[{i}] of BroadNetwork must have one row for each of the {inputs} {what}. "
                    f"Got shape {tuple(group.weights.shape)}."
                )
            if not same_home(group.weights, self.center):
                raise FeatureError(
                    f"The arrays of {name}[{i}] and the 'center' of BroadNetwork must belong to one array library and "
                    f"one device. Got {type(group.weights).__name__} and {type(self.center).__name__}. Move the parts "
                    "with .to(...)."
                )

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return int(self.center.shape[0])

    @property
    def feature_nodes(self) -> int:
        """Number of feature nodes P."""
        return sum(group.nodes for group in self.features)

    @property
    def enhancement_nodes(self) -> int:
        """Number of enhancement nodes."""
        return sum(group.nodes for group in self.enhancement)

    @property
    def size(self) -> int:
        """Number of all nodes M: the columns of every array that the network returns."""
        return self.feature_nodes + self.enhancement_nodes

    @property
    def smoothness(self) -> float:
        """The highest order of derivative that every node has."""
        return min(group.activation.smoothness for group in (*self.features, *self.enhancement))

    @cached_property
    def _layers(self) -> tuple[Layer, Layer | None]:
        """All features side by side, and all enhancement nodes."""
        return _stacked(self.features), _stacked(self.enhancement) if self.enhancement else None

    def evaluate(self, X: Array, multi_indices: Iterable[MultiIndex]) -> dict[MultiIndex, Array]:
        """Return the derivatives ∂^α of all nodes at the points X (n, d): arrays (n, M), enhancement nodes last.

        A multi-index α has one entry per coordinate: ``(2, 0)`` is ∂²/∂x² in the plane.

        >>> net = BroadNetwork([0.0], [FeatureGroup("sin", [[1.0, 2.0]], [0.0, 0.0])])
        >>> net.evaluate([[0.0]], [(0,), (3,)])[(3,)]
        array([[-1., -8.]])
        """
        wanted = [check_multi_index(alpha, self.dimension, "evaluate") for alpha in multi_indices]
        return dict(zip(wanted, self.combine(X, [{alpha: 1.0} for alpha in wanted]), strict=True))

    def combine(
        self,
        X: Array,
        forms: Sequence[Mapping[MultiIndex, float | Array]],
        *,
        out: Sequence[Array] | None = None,
        chunk_rows: int | None = None,
        workers: int = 1,
    ) -> list[Array]:
        """Return linear differential forms Σ_α c_α ∂^α of all nodes at the points X: an array (n, M) for each.

        Forms map multi-indices to coefficients, numbers or arrays (n,) with one entry per point. They are written to
        ``out`` if it is given; slices of one large matrix in any memory order are fine. ``chunk_rows`` rows are treated
        at a time, by default as many as keep temporaries in the cache, and ``workers`` threads work between matrix
        products on NumPy, which uses one by itself; torch has its own.

        The Laplacian of two plane waves, each −|w|² times the wave:

        >>> net = BroadNetwork([0.0, 0.0], [FeatureGroup("sin", [[1.0, 2.0], [3.0, 0.0]], [0.5, 0.5])])
        >>> value, laplacian = net.combine([[0.1, 0.2]], [{(0, 0): 1}, {(2, 0): 1, (0, 2): 1}])
        >>> (laplacian / value).round(10)
        array([[-10.,  -4.]])
        """
        X = self._points(X)
        checked = [self._form(form, X.shape[0], i) for i, form in enumerate(forms)]
        results = self._targets(out, len(checked), X.shape[0])
        step = row_chunks(X.shape[0], max(self.feature_nodes, self.enhancement_nodes), X)
        if chunk_rows is not None:
            step = check_integer("chunk_rows", chunk_rows, "combine", minimum=1, error=FeatureError)
        threads = check_integer("workers", workers, "combine", minimum=1, error=FeatureError)
        threads = min(threads, math.ceil(X.shape[0] / step)) if is_numpy_array(X) else 1
        if checked and X.shape[0]:
            features, enhancement = self._layers
            inputs, own = self._reduced(X - self.center, checked)
            todo = plan(own, features, enhanced=enhancement is not None)
            filler = Filler(todo, inputs, features, enhancement, results)
            if threads == 1:
                filler.run(step, 1, map)
            else:
                with ThreadPoolExecutor(threads) as pool:
                    filler.run(step, threads, pool.map)
        return results

    def contract(self, X: Array, multi_indices: Sequence[MultiIndex], weights: Array) -> list[Array]:
        """Return derivatives of functions Σ_m w_m G_m at points: an array (n, k) each, for weights (M, k).

        All derivatives of one order share one matrix product, so that a gradient in many dimensions costs little more
        than a value.

        >>> net = BroadNetwork([0.0], [FeatureGroup("sin", [[1.0, 2.0]], [0.0, 0.0])])
        >>> [value.tolist() for value in net.contract([[0.0]], [(0,), (1,)], np.array([[1.0], [3.0]]))]
        [[[0.0]], [[7.0]]]
        """
        X = self._points(X)
        features, enhancement = self._layers
        if enhancement is not None or X.shape[0] == 0:
            return [nodes @ weights for nodes in self.combine(X, [{alpha: 1.0} for alpha in multi_indices])]
        forms = [self._form({alpha: 1.0}, X.shape[0], i) for i, alpha in enumerate(multi_indices)]
        inputs, own = self._reduced(X - self.center, forms)
        values = contracted(inputs, features, list(dict.fromkeys(a for form in own for a in form)), weights)
        nothing = array_namespace(X).zeros((X.shape[0], weights.shape[1]), dtype=X.dtype, device=device(X))
        return [sum((c * values[alpha] for alpha, c in form.items()), start=nothing) for form in own]

    def _reduced(self, X: Array, forms: Sequence[Form]) -> tuple[Array, Sequence[Form]]:
        """Return the inputs of the nodes at centred points, and forms in these coordinates."""
        if self.reduction is None:
            return X, forms
        return self.reduction.coordinates(X), self.reduction.pulled_back(X, forms)

    def to(self, asarray: Callable[[Array], Array]) -> BroadNetwork:
        """Return the same network with every array passed through ``asarray``, to change library or device.

        For a GPU: ``network.to(lambda a: torch.as_tensor(a, device="cuda"))``.

        >>> net = BroadNetwork([0.0], [FeatureGroup("sin", [[1.0]], [0.0])])
        >>> net.to(np.copy).size
        1
        """
        return BroadNetwork(
            asarray(self.center),
            tuple(group.to(asarray) for group in self.features),
            tuple(group.to(asarray) for group in self.enhancement),
            None if self.reduction is None else self.reduction.to(asarray),
        )

    def to_numpy(self) -> BroadNetwork:
        """Return the same network on NumPy arrays."""
        return self.to(lambda array: np.asarray(to_device(array, "cpu")))

    def _points(self, X: Array) -> Array:
        if not is_array_api_obj(X) or not same_home(X, self.center):
            X = self._bring(check_points("X", X, "combine", self.dimension, error=FeatureError))
        if X.shape[0] == 0 and X.shape == (0, self.dimension):
            return X
        return float_array("X", X, "combine", (None, self.dimension))

    def _form(self, form: Mapping[MultiIndex, float | Array], rows: int, position: int) -> Form:
        """Check a form; numbers become floats, arrays columns (n, 1), zeros are dropped."""
        if not isinstance(form, Mapping):
            raise FeatureError(
                f"Form {position} of combine must map multi-indices to coefficients, like {{(2, 0): 1.0}}. "
                f"Got {shorten(form)} instead."
            )
        checked: dict[MultiIndex, float | Array] = {}
        for key, value in form.items():
            alpha = check_multi_index(key, self.dimension, "combine")
            for group in (*self.features, *self.enhancement):
                group.activation.require(sum(alpha))
            coefficient = self._coefficient(f"forms[{position}][{alpha}]", value, rows)
            if not isinstance(coefficient, float) or coefficient != 0.0:
                checked[alpha] = coefficient
        return checked

    def _coefficient(self, name: str, value: Array, rows: int) -> float | Array:
        if len(value.shape) == 0 if is_array_api_obj(value) else not isinstance(value, list | tuple):
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = math.nan
            if not math.isfinite(number):
                raise FeatureError(f"{name} of combine must be a finite number or an array. Got {shorten(value)}.")
            return number
        array = value if rows == 0 else float_array(name, value, "combine", (rows,))
        return self._bring(array)[:, None]

    def _bring(self, array: Array) -> Array:
        """Move an array to the library and device of the network."""
        if is_array_api_obj(array) and same_home(array, self.center):
            return array
        host = np.asarray(to_device(array, "cpu"), dtype=np.float64)
        return array_namespace(self.center).asarray(host, device=device(self.center))

    def _targets(self, out: Sequence[Array] | None, forms: int, rows: int) -> list[Array]:
        """Return the arrays to write into: those of the caller, checked, or new ones."""
        shape = (rows, self.size)
        if out is None:
            xp = array_namespace(self.center)
            return [xp.empty(shape, dtype=self.center.dtype, device=device(self.center)) for _ in range(forms)]
        targets = list(out)
        fits = len(targets) == forms and all(
            is_array_api_obj(target)
            and target.shape == shape
            and target.dtype == self.center.dtype
            and same_home(target, self.center)
            and getattr(getattr(target, "flags", None), "writeable", True)
            for target in targets
        )
        if not fits:
            found = [tuple(getattr(target, "shape", ())) for target in targets]
            raise FeatureError(
                f"The 'out' parameter of combine must hold {forms} writeable float64 arrays of shape {shape} in the "
                f"library and on the device of the network. Got shapes {found}. Leave it out to have them made."
            )
        return targets


def _stacked(groups: Sequence[_Group]) -> Layer:
    """Put groups side by side; a single group is taken as it is, without a copy."""
    runs, start = list[tuple[Activation, slice]](), 0
    for psi, own in groupby(groups, lambda group: group.activation):
        stop = start + sum(group.nodes for group in own)
        runs.append((psi, slice(start, stop)))
        start = stop
    if len(groups) == 1:
        return Layer(groups[0].weights, groups[0].bias, tuple(runs))
    xp = array_namespace(groups[0].weights)
    weights = xp.concat([group.weights for group in groups], axis=1)
    return Layer(weights, xp.concat([group.bias for group in groups]), tuple(runs))
