"""Activation exports for the tests: sound ones with a planted direction, and archives put together byte by byte."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np

from refusal_core.activations.npz import Export, read_export


def planted(
    n: int = 24,
    d: int = 8,
    *,
    seed: int = 0,
    signal: float = 4.0,
    categories: int = 4,
    prefix: str = "train",
    dtype=np.float32,
) -> dict[str, np.ndarray]:
    """Members of an export: `categories` of one label each, label 1 moved by `signal` along the first dimensions."""
    rng = np.random.default_rng(seed)
    code = np.arange(n) % categories
    labels = code % 2
    values = rng.standard_normal((n, d))
    values[:, : max(1, d // 4)] += signal * labels[:, None]
    return {
        "activations": values.astype(dtype),
        "labels": labels,
        "ids": np.array([f"{prefix}-{i:04d}" for i in range(n)]),
        "categories": np.array([f"{prefix} topic {k}" for k in code]),
    }


def npz_bytes(members: dict, compressed: bool = False) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **members)
    return file.getvalue()


def export(members: dict, name: str = "train.npz", **options) -> Export:
    return read_export(npz_bytes(members), name=name, **options)


def pair(**options) -> tuple[Export, Export]:
    """A train and a test export of the same planted direction; options go to `planted`."""
    seed = options.pop("seed", 0)
    train = planted(seed=2 * seed, **options)
    test = planted(seed=2 * seed + 1, prefix="test", **options)
    return export(train), export(test, "test.npz")


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=True)
    return file.getvalue()


def npy_header(descr: str, shape: str, data: bytes = b"", version: int = 1, length: int | None = None) -> bytes:
    """A .npy member whose header says what it is told to say."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", size) + text + data


def archive(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of raw members, names as given, also twice."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a name that is given twice
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            out.writestr(info, data)
    return file.getvalue()


def raw_members(members: dict) -> list[tuple[str, bytes]]:
    return [(f"{key}.npy", npy(value)) for key, value in members.items()]


def replaced(members: dict, key: str, data: bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive with the raw bytes of one member exchanged."""
    return archive([(name, data if name == f"{key}.npy" else raw) for name, raw in raw_members(members)], method)


def patched(raw: bytes, offset_local: int, offset_central: int, value: bytes) -> bytes:
    """`raw` with bytes of the first local and the first central header overwritten."""
    out = bytearray(raw)
    out[offset_local : offset_local + len(value)] = value
    central = raw.index(b"PK\x01\x02")
    out[central + offset_central : central + offset_central + len(value)] = value
    return bytes(out)


def flipped(raw: bytes, member: str = "activations") -> bytes:
    """`raw` with one bit of a member's data changed."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive_:
        info = archive_.getinfo(f"{member}.npy")
    out = bytearray(raw)
    out[info.header_offset + 30 + len(info.filename) + info.compress_size // 2 + 20] ^= 4
    return bytes(out)


def write(folder: Path, name: str, raw: bytes) -> Path:
    path = folder / name
    path.write_bytes(raw)
    return path
