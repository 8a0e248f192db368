"""A solution as a torch module."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import InputError, MissingDependencyError
from pibls.features import BroadNetwork
from pibls.features.deep import DeepNetwork
from pibls.solution.celled import CellNetwork
from pibls.solution.evolved import EvolvedNetwork
from pibls.solution.evolved_cells import EvolvedCells, EvolvedLegs

if TYPE_CHECKING:
    from pibls.solution.solution import Solution


def to_torch(solution: Solution) -> Any:
    """Return a module that maps points ``(n, d)`` to values ``(n, fields)``, with all trained weights as parameters.

    Its gradients come from torch, so that it can be trained further or used inside a larger model.
    """
    try:
        import torch
    except ImportError:
        raise MissingDependencyError("to_torch needs PyTorch, which is not installed; install pibls[torch].") from None

    network = solution.network
    if isinstance(network, EvolvedNetwork | EvolvedCells | EvolvedLegs):
        raise InputError(
            "A solution that was followed in time cannot become a torch module: its weights are polynomials in time. "
            "Evaluate it with solution(X), or fit the problem with PIBLS."
        )
    if isinstance(network, DeepNetwork):
        return _deep(network, solution.weights, torch)
    if isinstance(network, CellNetwork):
        return _celled(network, solution.weights, torch)
    return _broad(network, solution.weights, torch)


def _nodes(network: BroadNetwork, torch: Any) -> Any:
    """Return a class of modules that have the nodes of a broad network, which are fixed."""

    class Nodes(torch.nn.Module):  # type: ignore[misc]
        """The nodes, as buffers."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("center", torch.as_tensor(np.array(network.center)))
            if network.reduction is not None:
                for name in ("weights", "half_widths"):
                    buffer = torch.as_tensor(np.array(getattr(network.reduction, name)))
                    self.register_buffer(f"reduction_{name}", buffer)
            for kind, groups in (("features", network.features), ("enhancement", network.enhancement)):
                for i, group in enumerate(groups):
                    self.register_buffer(f"{kind}_{i}_weights", torch.as_tensor(np.array(group.weights)))
                    self.register_buffer(f"{kind}_{i}_bias", torch.as_tensor(np.array(group.bias)))

        def _layer(self, inputs: Any, kind: str, groups: Any) -> list[Any]:
            nodes = []
            for i, group in enumerate(groups):
                z = inputs @ getattr(self, f"{kind}_{i}_weights") + getattr(self, f"{kind}_{i}_bias")
                nodes.append(group.activation.derivatives(z, (0,))[0])
            return nodes

        def nodes(self, X: Any) -> Any:
            """Return all nodes at the rows of ``X``."""
            inputs = X - self.center
            if network.reduction is not None:
                own = self.reduction_weights, self.reduction_half_widths
                inputs = replace(network.reduction, weights=own[0], half_widths=own[1]).coordinates(inputs)
            features = torch.cat(self._layer(inputs, "features", network.features), dim=1)
            nodes = [features, *self._layer(features, "enhancement", network.enhancement)]
            return torch.cat(nodes, dim=1)

    return Nodes


def _broad(network: BroadNetwork, weights: FloatArray, torch: Any) -> Any:
    """Return a broad network as a module: its nodes are fixed, its output weights are parameters."""

    class BroadModule(_nodes(network, torch)):  # type: ignore[misc]
        """The broad network with its output weights."""

        def __init__(self) -> None:
            super().__init__()
            self.output = torch.nn.Parameter(torch.as_tensor(np.array(weights.T)))

        def forward(self, X: Any) -> Any:
            """Return the fields at the rows of ``X``."""
            return self.nodes(X) @ self.output

    return BroadModule()


def _celled(network: CellNetwork, weights: FloatArray, torch: Any) -> Any:
    """Return a network of cells as a module: cells and nodes are fixed, the weights of all cells are parameters."""

    class CelledModule(_nodes(network.reference, torch)):  # type: ignore[misc]
        """The nodes of a cell with the output weights of every part."""

        def __init__(self) -> None:
            super().__init__()
            for name in ("tree", "cuts", "centers", "halves"):
                self.register_buffer(name, torch.as_tensor(np.array(getattr(network, name))))
            # A solution may mix the fields of its network.
            mixed = np.einsum("gf,pfm->pgm", weights, network.weights)
            self.output = torch.nn.Parameter(torch.as_tensor(mixed))

        def locate(self, X: Any) -> Any:
            """Return the number of the part that each point is in; it has no gradient."""
            X = X.detach()
            box = torch.zeros(len(X), dtype=torch.int64, device=X.device)
            for _ in range(network.depth):
                axis, low, high = self.tree[box].unbind(dim=1)
                above = X.gather(1, axis.clamp(min=0)[:, None])[:, 0] > self.cuts[box]
                box = torch.where(axis < 0, box, torch.where(above, high, low))
            part, stop = self.tree[box, 1], self.tree[box, 2]
            rest = torch.nonzero(stop - part != 1)[:, 0]
            if len(rest):
                # Few points are in a cell of several parts or beside the domain: the search is left to NumPy.
                found = network.locate(X[rest].double().cpu().numpy())
                part[rest] = torch.as_tensor(found, device=X.device)
            return part

        def forward(self, X: Any) -> Any:
            """Return the fields at the rows of ``X``."""
            part = self.locate(X)
            nodes = self.nodes((X - self.centers[part]) / self.halves[part])
            return torch.einsum("nm,nfm->nf", nodes, self.output[part])

    return CelledModule()


def _deep(network: DeepNetwork, weights: FloatArray, torch: Any) -> Any:
    """Return a trained network as a module, with all its layers as parameters."""

    def parameter(array: Any) -> Any:
        return torch.nn.Parameter(torch.as_tensor(np.array(array)))

    class DeepModule(torch.nn.Module):  # type: ignore[misc]
        """The hidden layers with the output layer."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("center", torch.as_tensor(np.array(network.center)))
            self.weights = torch.nn.ParameterList([parameter(layer.weights) for layer in network.layers])
            self.biases = torch.nn.ParameterList([parameter(layer.bias) for layer in network.layers])
            self.output = parameter(weights.T)

        def forward(self, X: Any) -> Any:
            """Return the fields at the rows of ``X``."""
            nodes = X - self.center
            for layer, weight, bias in zip(network.layers, self.weights, self.biases, strict=True):
                nodes = layer.activation.derivatives(nodes @ weight + bias, (0,))[0]
            return nodes @ self.output[:-1] + self.output[-1]

    return DeepModule()
