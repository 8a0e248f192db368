"""A solution as a torch module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import InputError, MissingDependencyError
from pibls.features import BroadNetwork
from pibls.features.deep import DeepNetwork
from pibls.solution.evolved import EvolvedNetwork
from pibls.solution.windowed import WindowedNetwork

if TYPE_CHECKING:
    from pibls.solution.solution import Solution

__all__ = ["to_torch"]


def to_torch(solution: Solution) -> Any:
    """Return a module that maps points ``(n, d)`` to values ``(n, fields)``, with all trained weights as parameters.

    Its gradients come from torch, so that it can be trained further or used inside a larger model.
    """
    try:
        import torch
    except ImportError:
        raise MissingDependencyError("to_torch needs PyTorch, which is not installed; install pibls[torch].") from None

    network = solution.network
    if isinstance(network, EvolvedNetwork):
        raise InputError(
            "A solution by the method of lines cannot become a torch module: its weights are polynomials in time. "
            "Evaluate it with solution(X), or fit the problem with PIBLS."
        )
    if isinstance(network, WindowedNetwork):
        raise InputError(
            "A solution by windows cannot become a torch module: each window has a network of its own. Evaluate it "
            "with solution(X), or fit the problem with PIBLS."
        )
    if isinstance(network, DeepNetwork):
        return _deep(network, solution.weights, torch)
    return _broad(network, solution.weights, torch)


def _broad(network: BroadNetwork, weights: FloatArray, torch: Any) -> Any:
    """Return a broad network as a module: its nodes are fixed, its output weights are parameters."""

    class Module(torch.nn.Module):  # type: ignore[misc]
        """The broad network with its output weights."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("center", _tensor(network.center))
            for kind, groups in (("features", network.features), ("enhancement", network.enhancement)):
                for i, group in enumerate(groups):
                    self.register_buffer(f"{kind}_{i}_weights", _tensor(group.weights))
                    self.register_buffer(f"{kind}_{i}_bias", _tensor(group.bias))
            self.output = torch.nn.Parameter(_tensor(weights.T))

        def _layer(self, inputs: Any, kind: str, groups: Any) -> list[Any]:
            nodes = []
            for i, group in enumerate(groups):
                z = inputs @ getattr(self, f"{kind}_{i}_weights") + getattr(self, f"{kind}_{i}_bias")
                nodes.append(group.activation.derivatives(z, (0,))[0])
            return nodes

        def _special(self, X: Any) -> list[Any]:
            # Fixed, and needed in double precision: they follow the points instead of the module.
            groups = [group.to(lambda a: torch.as_tensor(np.array(a), device=X.device)) for group in network.special]
            return [group.combine(X.double(), [{(0, 0): 1.0}])[0].to(X.dtype) for group in groups]

        def forward(self, X: Any) -> Any:
            """Return the fields at the rows of ``X``."""
            features = torch.cat(self._layer(X - self.center, "features", network.features), dim=1)
            nodes = [features, *self._layer(features, "enhancement", network.enhancement), *self._special(X)]
            return torch.cat(nodes, dim=1) @ self.output

    def _tensor(array: Any) -> Any:
        return torch.as_tensor(np.array(array))

    return Module()


def _deep(network: DeepNetwork, weights: FloatArray, torch: Any) -> Any:
    """Return a trained network as a module, with all its layers as parameters."""

    def parameter(array: Any) -> Any:
        return torch.nn.Parameter(torch.as_tensor(np.array(array)))

    class Module(torch.nn.Module):  # type: ignore[misc]
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

    return Module()
