"""What decides a training besides its data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

from refusal_core.classifier.encode import SHORTEST_INPUT
from refusal_core.errors import InputError


def _setting(default: float, least: float, most: float, help: str):
    return field(default=default, metadata={"least": least, "most": most, "help": help})


@dataclass(frozen=True)
class Settings:
    """Each field is an option of `train`; `help` and the range are in its metadata.

    Class weight = (rows / (classes * rows of the class)) ** weight_power.
    """

    epochs: int = _setting(2, 1, 1_000, "passes over the training rows")
    batch_size: int = _setting(16, 1, 4_096, "rows of one step")
    learning_rate: float = _setting(1e-4, 1e-9, 1, "highest learning rate, after the warm-up")
    warmup_share: float = _setting(0.06, 0, 0.99, "share of the steps in which the learning rate rises")
    weight_decay: float = _setting(0.01, 0, 1, "weight decay of AdamW")
    max_length: int = _setting(
        256, SHORTEST_INPUT, 1_000_000, "tokens of a pair that are read, if the model reads so many"
    )
    weight_power: float = _setting(0.5, 0, 1, "0 leaves classes as frequent as they are, 1 counts each class alike")
    label_smoothing: float = _setting(0.0, 0, 0.9, "share of each target that is spread over all classes")
    average_share: float = _setting(
        0.0, 0, 1, "last share of the steps whose weights are averaged; kept unless clearly worse"
    )
    evaluations: int = _setting(1, 1, 1_000, "evaluations of an epoch, each with a checkpoint")
    patience: int = _setting(0, 0, 10_000, "evaluations without a better macro F1 that end the training; 0 never does")
    keep: int = _setting(2, 1, 10_000, "checkpoints that stay: the best and the latest ones")
    freeze_embeddings: bool = field(default=False, metadata={"help": "leave the token embeddings as the base has them"})
    bfloat16: bool = field(
        default=False, metadata={"help": "compute in bfloat16 where that is safe: faster on processors that have it"}
    )
    seed: int = _setting(0, 0, 2**31 - 1, "seed of shuffling, dropout, the new head and the split")

    def check(self) -> None:
        """Raise InputError for a number that is out of range."""
        for each in fields(self):
            value, least, most = getattr(self, each.name), each.metadata.get("least"), each.metadata.get("most")
            if least is not None and not (math.isfinite(value) and least <= value <= most):
                raise InputError(
                    f"{value} is out of range",
                    where=option_of(each.name),
                    why=f"{least:g} to {most:g} was expected: {each.metadata['help']}",
                )


def option_of(name: str) -> str:
    """The option of `train` that sets the field `name`."""
    return "--" + name.replace("_", "-")
