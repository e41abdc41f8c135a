"""The mean of a training's last weights: a plain checkpoint, steadier than any one of those it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FILE = "mean.safetensors"


class WeightMean:
    """A running mean of a model's trained parameters, in float32."""

    def __init__(self) -> None:
        self.taken = 0
        self._mean: dict[str, Any] = {}

    def take(self, model: Any) -> None:
        """Add the model's weights as they are now."""
        self.taken += 1
        for name, weight in model.named_parameters():
            if weight.requires_grad:
                now = weight.detach().float().cpu()
                mean = self._mean.setdefault(name, now.clone())
                mean.add_(now - mean, alpha=1 / self.taken)

    def put(self, model: Any) -> None:
        """Give the model the mean; a mean of nothing changes nothing."""
        import torch

        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name in self._mean:
                    weight.copy_(self._mean[name])

    def save(self, folder: Path) -> None:
        """Beside a checkpoint, so that a resumed training goes on with it."""
        if self.taken:
            from safetensors.torch import save_file

            save_file(self._mean, folder / FILE, metadata={"taken": str(self.taken)})

    def load(self, folder: Path) -> None:
        """The mean as `save` left it there, or none."""
        self.taken, self._mean = 0, {}
        if (folder / FILE).is_file():
            from safetensors import safe_open

            with safe_open(folder / FILE, framework="pt", backend="pread") as file:
                self._mean = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                self.taken = int(file.metadata()["taken"])
