"""Activations of many examples as one source of blocks, whatever file they come from, and what makes them unusable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from refusal_core.errors import InputError
from refusal_core.limits import CONVERT_TENSORS

BLOCK_BYTES = 16 << 20
_READ = ("float16", "float32", "float64", "bfloat16")


@dataclass(frozen=True)
class Tensors:
    """One source: `n` examples of `shape` ([d] or [layers, d]) and `dtype`, named; `blocks()` gives them in order.

    `names` of the examples come from files or tensors, None where rows have none.
    """

    name: str
    n: int
    shape: tuple[int, ...]
    dtype: str
    names: tuple[str, ...] | None
    blocks: Callable[[], Iterator[np.ndarray]]


def whole(array: np.ndarray, name: str) -> Tensors:
    check(array.dtype.name, array.shape, name, (2, 3))
    step = max(1, BLOCK_BYTES // max(1, int(np.prod(array.shape[1:])) * array.dtype.itemsize))

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, len(array), step):
            yield array[start : start + step]

    return Tensors(name, len(array), array.shape[1:], array.dtype.name, None, blocks)


def listed(name: str, names: list[str], shapes: list, read: Callable[[int], np.ndarray]) -> Tensors:
    check_alike(name, names, shapes)
    shape, dtype = shapes[0]
    step = max(1, BLOCK_BYTES // max(1, 4 * int(np.prod(shape))))

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, len(names), step):
            yield np.stack([read(place) for place in range(start, min(start + step, len(names)))])

    return Tensors(name, len(names), shape, dtype, tuple(names), blocks)


def check_alike(name: str, names: Sequence[str], shapes: list) -> None:
    for each, (shape, dtype) in zip(names, shapes, strict=True):
        if (shape, dtype) != shapes[0]:
            raise InputError(
                f'"{each}" is {dtype} of shape {list(shape)}, "{names[0]}" is {shapes[0][1]} of {list(shapes[0][0])}',
                where=name,
                why="all need one type and shape",
                fix="pool each example to one vector of the same layers before it is saved",
            )


def check(dtype: str, shape: tuple[int, ...], where: str, axes: tuple[int, int]) -> None:
    if dtype not in _READ:
        raise InputError(
            f"it is of type {dtype}",
            where=where,
            why="float16, bfloat16, float32 and float64 are read",
            fix="save it as float32 (of an NPZ with 16-bit patterns say --bits)",
        )
    if len(shape) not in axes or 0 in shape:
        wanted = (
            "[dimensions] or [layers, dimensions]"
            if axes[0] == 1
            else "[examples, dimensions] or [examples, layers, dimensions]"
        )
        raise InputError(
            f"it has shape {list(shape)}", where=where, why=f"{wanted} is needed", fix="reshape it before it is saved"
        )


def check_count(count: int, name: str) -> None:
    if count > CONVERT_TENSORS:
        raise InputError(
            f"it holds {count:,} tensors",
            where=name,
            why=f"at most {CONVERT_TENSORS:,} are read one by one",
            fix="stack them into one array [examples, dimensions] before they are saved",
        )


def natural(name: object) -> list:
    """Sorts "layer 9" before "layer 10"."""
    text = name.name if isinstance(name, Path) else str(name)
    return [
        (0, int(part), "") if part.isdecimal() and part.isascii() else (1, 0, part) for part in re.split(r"(\d+)", text)
    ]
