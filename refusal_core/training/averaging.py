"""The mean of a training's last weights, a plain checkpoint that is steadier than any one of them."""

from __future__ import annotations

from typing import Any


class WeightMean:
    """A running mean of a model's parameters, in float32."""

    def __init__(self) -> None:
        self.taken = 0
        self._mean: dict[str, Any] = {}

    def take(self, model: Any) -> None:
        """Add the model's weights as they are now; those that are not trained stay out."""
        self.taken += 1
        for name, weight in model.named_parameters():
            if weight.requires_grad:
                mean = self._mean.setdefault(name, weight.detach().clone().float())
                mean.add_(weight.detach().float() - mean, alpha=1 / self.taken)

    def put(self, model: Any) -> None:
        """Give the model the mean; a mean of nothing changes nothing."""
        import torch

        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name in self._mean:
                    weight.copy_(self._mean[name])

    def state(self) -> dict[str, Any]:
        """The mean by name, to be saved; `restore` takes it back."""
        return dict(self._mean)

    def restore(self, mean: dict[str, Any], taken: int) -> None:
        self._mean, self.taken = {name: tensor.clone() for name, tensor in mean.items()}, taken
