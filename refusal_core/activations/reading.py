"""How files become a training and a test part: one set of choices for the page and the commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from refusal_core.activations.npz import Export, read_export
from refusal_core.activations.parts import hold_out_categories, hold_out_rows
from refusal_core.errors import InputError
from refusal_core.jobs import Job

Source = str | os.PathLike[str] | BinaryIO | bytes


@dataclass(frozen=True)
class Reading:
    """`columns` our member names to the files'; `labels` what stands for 0 and for 1 there; `bits` and `layer_index`
    as in `read_export`. Of one pooled file `held_out` names the categories to test on, or `held_out_share` the share
    of random rows; without both the study compares splits.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, str] | None = None
    bits: str | None = None
    layer_index: int | None = None
    held_out: tuple[str, ...] = ()
    held_out_share: float | None = None

    def arguments(self) -> list[str]:
        """The same choices as options of the command."""
        words = [f"--map={ours}={key}" for ours, key in self.columns.items() if ours != key]
        if self.labels:
            words += [f"--zero={self.labels[0]}", f"--one={self.labels[1]}"]
        if self.layer_index is not None:
            words.append(f"--layer-index={self.layer_index}")
        if self.bits:
            words.append(f"--bits={self.bits}")
        words += [f"--hold-out={name}" for name in self.held_out]
        return words + ([f"--hold-out-share={self.held_out_share!r}"] if self.held_out_share is not None else [])


def read_parts(
    sources: Sequence[tuple[Source, str | None]], reading: Reading, seed: int = 0, job: Job | None = None
) -> tuple[Export, Export | None]:
    """The training part and the test part of one or two (file, name for messages); the second None for a comparison
    of splits. Raises as `read_export` does, and InputError where two files come with a part to hold out.
    """
    if reading.held_out and reading.held_out_share is not None:
        raise InputError("categories and random rows are to be held out", fix="choose one of the two")
    if len(sources) > 1 and (reading.held_out or reading.held_out_share is not None):
        raise InputError(
            "a part of the file is to be held out, but a test file is given too",
            fix="give one file, or hold out nothing",
        )
    exports = [
        read_export(
            source,
            name=name,
            columns=reading.columns,
            bits=reading.bits,
            layer_index=reading.layer_index,
            labels=reading.labels,
            job=job,
        )
        for source, name in sources
    ]
    if len(exports) > 1:
        return exports[0], exports[1]
    if reading.held_out:
        return hold_out_categories(exports[0], reading.held_out)
    if reading.held_out_share is not None:
        return hold_out_rows(exports[0], reading.held_out_share, seed)
    return exports[0], None
