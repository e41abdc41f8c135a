"""Activations in safetensors files: one array, a tensor an example, or a tensor a layer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from refusal_core.activations.tensors import BLOCK_BYTES, Tensors, check, check_alike, check_count, listed, natural
from refusal_core.errors import InputError


def read_safetensors(path: Path, key: str | None, stack: str | None) -> Tensors:
    with opened(path) as tensors:
        keys = sorted(tensors.keys(), key=natural)
        if key is not None or len(keys) == 1:
            key = one_key(tensors, key, path.name)
            shape, dtype = (
                tuple(tensors.get_slice(key).get_shape()),
                tensor_array(tensors, key, path.name, rows=1).dtype.name,
            )
            check(dtype, shape, path.name, (2, 3))
            return Tensors(path.name, shape[0], shape[1:], dtype, None, lambda: _slices(path, key, shape))
        check_count(len(keys), path.name)
        shapes = []
        for each in keys:
            shape = tuple(tensors.get_slice(each).get_shape())
            shapes.append((shape, tensor_array(tensors, each, path.name, rows=1).dtype.name))
            check(shapes[-1][1], shape, f'{path.name}, tensor "{each}"', (1, 2))
    two_axes = len(shapes[0][0]) == 2
    if two_axes and stack is None:
        raise InputError(
            f"it holds {len(keys):,} tensors of shape {list(shapes[0][0])}",
            where=path.name,
            why="each may be an example [layers, dimensions] or a layer [examples, dimensions]",
            fix="say which: --stack examples or --stack layers",
        )
    if two_axes and stack == "layers":
        return _layers(path, keys, shapes)

    def read(place: int) -> np.ndarray:
        with opened(path) as tensors:
            return tensor_array(tensors, keys[place], path.name)

    return listed(path.name, keys, shapes, read)


def _slices(path: Path, key: str, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    step = max(1, BLOCK_BYTES // max(1, 4 * int(np.prod(shape[1:]))))
    with opened(path) as tensors:
        for start in range(0, shape[0], step):
            yield tensor_array(tensors, key, path.name, start, step)


def _layers(path: Path, keys: list[str], shapes: list) -> Tensors:
    """Tensors [n, d], one a layer, as [n, layers, d]."""
    check_alike(path.name, keys, shapes)
    (n, d), dtype = shapes[0]
    step = max(1, BLOCK_BYTES // max(1, 4 * d * len(keys)))

    def blocks() -> Iterator[np.ndarray]:
        with opened(path) as tensors:
            for start in range(0, n, step):
                yield np.stack([tensor_array(tensors, key, path.name, start, step) for key in keys], 1)

    return Tensors(path.name, n, (len(keys), d), dtype, None, blocks)


def opened(path: Path):
    """The safetensors file. Raises InputError for one that is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        return safe_open(path, framework="pt", backend="pread")
    except SafetensorError:
        raise InputError(
            "it is no sound safetensors file", where=path.name, why="its header cannot be read", fix="save it again"
        ) from None


def one_key(tensors: object, key: str | None, name: str) -> str:
    keys = list(tensors.keys())
    if key is None and len(keys) == 1:
        return keys[0]
    if key not in keys:
        raise InputError(
            f'it has no tensor "{key}"' if key else f"it holds {len(keys):,} tensors",
            where=name,
            why=f"it holds {', '.join(keys[:12])}" if keys else "it is empty",
            fix="name one by --key",
        )
    return key


def tensor_array(tensors: object, key: str, name: str, start: int = 0, rows: int | None = None) -> np.ndarray:
    """Rows of a tensor; bfloat16 becomes float32, which holds it exactly."""
    import torch

    part = tensors.get_slice(key)
    shape = part.get_shape()
    value = tensors.get_tensor(key) if rows is None or not shape else part[start : min(start + rows, shape[0])]
    if value.dtype == torch.bfloat16:
        return value.float().numpy()
    if value.dtype not in (torch.float16, torch.float32, torch.float64):
        check(str(value.dtype).removeprefix("torch."), tuple(shape), f'{name}, tensor "{key}"', (1, 2))
    return value.numpy()
