"""Activations in other files than ours: .npy, safetensors, a member of an NPZ, or a folder with a file an example.

Nothing is unpickled and nothing is held but a block: .npy and stored members are mapped, tensors are read one by one.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from refusal_core.activations.arrays import read_array
from refusal_core.activations.container import open_container
from refusal_core.activations.safe_tensors import one_key, opened, read_safetensors, tensor_array
from refusal_core.activations.tensors import Tensors, check, check_count, listed, natural, whole
from refusal_core.errors import InputError, WorkError

SAVE_SAFETENSORS = 'load it where you trust it and run safetensors.torch.save_file({"activations": tensor}, FILE)'
_PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".joblib")
_SUFFIXES = (".npy", ".npz", ".safetensors")


def open_tensors(
    path: str | os.PathLike[str], *, key: str | None = None, stack: str | None = None, bits: str | None = None
) -> Tensors:
    """The activations in `path`: a .npy, .npz or .safetensors file, or a folder of .npy or .safetensors files.

    `key` names the member or tensor; `stack` ("examples" or "layers") says what several tensors of two axes are; `bits`
    as in `read_activations`. Raises InputError for a pickle (with the line that saves it otherwise), other types and
    shapes, and tensors that do not fit each other.
    """
    path = Path(path)
    if path.is_dir():
        return _folder(path, key)
    if not path.exists():
        raise InputError("there is no such file", where=str(path), fix="correct the path")
    _refuse_pickle(path)
    try:
        if path.suffix == ".npy":
            return whole(_mapped(path), path.name)
        if path.suffix == ".npz":
            return whole(_member(path, key, bits), path.name)
        return read_safetensors(path, key, stack)
    except OSError as error:
        raise WorkError(f"{path.name} cannot be read: {(error.strerror or str(error)).lower()}.") from error


def _folder(folder: Path, key: str | None) -> Tensors:
    """A file an example, in the order of their names, numbers by value."""
    files = sorted((f for f in folder.iterdir() if f.is_file() and not f.name.startswith(".")), key=natural)
    if any(f.suffix in _PICKLES for f in files):
        _refuse_pickle(next(f for f in files if f.suffix in _PICKLES))
    files = [f for f in files if f.suffix in (".npy", ".safetensors")]
    if not files:
        raise InputError(
            "it holds no .npy or .safetensors file", where=folder.name, why="a file an example is read from a folder"
        )
    check_count(len(files), folder.name)
    shapes = []
    for file in files:
        array = _example(file, key)
        check(array.dtype.name, array.shape, f"{folder.name}/{file.name}", (1, 2))
        shapes.append((array.shape, array.dtype.name))
    return listed(folder.name, [f.stem for f in files], shapes, lambda place: _example(files[place], key))


def _example(file: Path, key: str | None) -> np.ndarray:
    if file.suffix == ".npy":
        return _mapped(file)
    with opened(file) as tensors:
        return tensor_array(tensors, one_key(tensors, key, file.name), file.name)


def _mapped(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        head = file.read(6)
    if head != b"\x93NUMPY":
        raise InputError(
            "it is not a NumPy array", where=path.name, why="its first bytes say so", fix="save it by numpy.save"
        )
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError) as problem:
        if "pickle" in str(problem).lower() or "object" in str(problem).lower():
            raise InputError(
                "it holds pickled Python objects",
                where=path.name,
                why="pickles can run code and are never opened",
                fix="save a rectangular array of float32",
            ) from None
        raise InputError(
            "its header and its size contradict each other", where=path.name, fix="save it again by numpy.save"
        ) from None


def _member(path: Path, key: str | None, bits: str | None) -> np.ndarray:
    container = open_container(path, path.name)
    members = container.members
    key = key or "activations"
    if key not in members:
        shown = ", ".join(list(members)[:12])
        raise InputError(f'it has no member "{key}"', where=path.name, why=f"it holds {shown}", fix="name one by --key")
    return read_array(container, members[key], bits=bits)


def _refuse_pickle(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(4096)
    torch_zip = head.startswith(b"PK") and b"data.pkl" in head
    if path.suffix in _PICKLES or head.startswith(b"\x80") or torch_zip:
        raise InputError(
            "it is a PyTorch or pickle file",
            where=path.name,
            why="such a file can run code and is never opened",
            fix=SAVE_SAFETENSORS,
        )
    if path.suffix not in _SUFFIXES:
        raise InputError(
            f'its ending "{path.suffix}" is not known',
            where=path.name,
            why="files that end in .npy, .npz or .safetensors and folders of them are read",
            fix="save it as one of these",
        )
