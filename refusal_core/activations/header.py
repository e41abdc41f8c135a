"""The header of a .npy member: dtype, shape and order, checked against the member's size before anything is allocated.

The format is NumPy's (numpy.lib.format, NEP 1). It is parsed here because numpy.load allocates what the header claims.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

import numpy as np

from refusal_core.activations.container import UNPACK_ERRORS, Container, Member
from refusal_core.errors import InputError
from refusal_core.limits import NPZ_HEADER_BYTES

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4, (3, 0): 4}


@dataclass(frozen=True)
class Header:
    """`size` is how many bytes stand before the data; `fortran` says that the first index runs fastest."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    size: int

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(container: Container, member: Member) -> Header:
    """The header of `member`. Raises InputError for pickled objects, records, lies about size, and damage."""
    where = f'{container.name}, member "{member.key}"'
    text, size = _header_text(container, member, where)
    try:
        fields = ast.literal_eval(text)
        descr, shape, fortran = fields["descr"], fields["shape"], fields["fortran_order"]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise _unreadable(where) from None
    if not isinstance(shape, tuple) or not all(type(n) is int for n in shape) or type(fortran) is not bool:
        raise _unreadable(where)
    header = Header(_dtype(descr, where), shape, fortran, size)
    if any(n < 0 for n in shape) or header.size + header.data_bytes != member.info.file_size:
        raise InputError(
            f"it declares shape {list(shape)} of {header.dtype} but holds "
            f"{max(member.info.file_size - size, 0):,} bytes",
            where=where,
            why="header and content contradict each other",
            fix="export the file again",
        )
    return header


def _header_text(container: Container, member: Member, where: str) -> tuple[str, int]:
    try:
        with container.stream(member) as stream:
            start = stream.read(12)
            length_bytes = _LENGTH_BYTES.get(tuple(start[6:8]))
            if not start.startswith(_MAGIC) or length_bytes is None:
                raise InputError(
                    "it is not a NumPy array",
                    where=where,
                    why="its first bytes say so",
                    fix="write the file by numpy.savez",
                )
            length = int.from_bytes(start[8 : 8 + length_bytes], "little")
            if length > NPZ_HEADER_BYTES:
                raise InputError(
                    f"its header claims {length:,} bytes",
                    where=where,
                    why=f"at most {NPZ_HEADER_BYTES:,} are read",
                    fix="export the file again",
                )
            text = start[8 + length_bytes :] + stream.read(max(length - (4 - length_bytes), 0))
            return text[:length].decode("latin1"), 8 + length_bytes + length
    except UNPACK_ERRORS:
        raise container.damaged(member.key) from None


def _dtype(descr: object, where: str) -> np.dtype:
    if isinstance(descr, list):
        raise InputError(
            "it is an array of records",
            where=where,
            why="a plain array is needed",
            fix="save each field as its own member",
        )
    try:
        dtype = np.dtype(descr) if isinstance(descr, str) else None
    except (TypeError, ValueError):
        raise InputError(
            f'its type "{descr}" is unknown',
            where=where,
            why="float16, float32 and float64 are read",
            fix="save it with .astype(numpy.float32)",
        ) from None
    if dtype is None or dtype.names or dtype.subdtype:
        raise _unreadable(where)
    if dtype.hasobject:
        raise InputError(
            "it holds pickled Python objects",
            where=where,
            why="pickles can run code and are never opened",
            fix="save numbers as a rectangular array and text with dtype=str, or leave the member out",
        )
    return dtype


def _unreadable(where: str) -> InputError:
    return InputError(
        "its array header cannot be read",
        where=where,
        why="dtype, order and shape are needed",
        fix="write the file by numpy.savez",
    )
