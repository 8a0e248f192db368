"""A solution as a torch module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.errors import MissingDependencyError

if TYPE_CHECKING:
    from pibls.solution.solution import Solution

__all__ = ["to_torch"]


def to_torch(solution: Solution) -> Any:
    """Return a module that maps points ``(n, d)`` to values ``(n, fields)``, with the weights as parameters.

    Its gradients come from torch, so that it can be trained further or used inside a larger model.
    """
    try:
        import torch
    except ImportError:
        raise MissingDependencyError("to_torch needs PyTorch, which is not installed; install pibls[torch].") from None

    network = solution.network

    class Module(torch.nn.Module):  # type: ignore[misc]
        """The broad network with its output weights."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("center", _tensor(network.center))
            for kind, groups in (("features", network.features), ("enhancement", network.enhancement)):
                for i, group in enumerate(groups):
                    self.register_buffer(f"{kind}_{i}_weights", _tensor(group.weights))
                    self.register_buffer(f"{kind}_{i}_bias", _tensor(group.bias))
            self.output = torch.nn.Parameter(_tensor(solution.weights.T))

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
