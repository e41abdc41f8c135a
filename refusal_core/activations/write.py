"""Writing an export: rows as they come, never all in memory, into an NPZ that is whole or not there."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from refusal_core.activations.columns import as_texts, check_unique
from refusal_core.atomic import atomic_file
from refusal_core.errors import InputError
from refusal_core.limits import ACTIVATION_FILE_BYTES, COLUMN_BYTES, check_size

DTYPES = ("float16", "float32", "float64")


def write_export(
    path: str | os.PathLike[str],
    blocks: Iterable[np.ndarray],
    *,
    shape: Sequence[int],
    dtype: str,
    labels: Sequence[int],
    ids: Sequence[str],
    categories: Sequence[str],
    members: Mapping[str, object] | None = None,
) -> None:
    """Write activations of `shape` ([n, d] or [n, layers, d]) from `blocks` of rows, with the columns beside them.

    `members` are further single values or texts. The same input gives the same bytes. Raises InputError for a value
    that `dtype` cannot hold, blank or repeated ids, blank categories, and a file over the limit; ValueError when the
    blocks are not of `shape`.
    """
    n, where = shape[0], os.path.basename(os.fspath(path))
    if len(labels) != n or len(ids) != n or len(categories) != n:
        raise ValueError(f"{n} rows, {len(labels)} labels, {len(ids)} ids, {len(categories)} categories")
    columns = {"ids": _texts(ids, f"{where}, ids"), "categories": _texts(categories, f"{where}, categories")}
    check_unique(tuple(columns["ids"].tolist()), f"{where}, ids")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    check_size(size, ACTIVATION_FILE_BYTES, what="the export", where=where, fix="write fewer layers or examples a file")
    small = {"labels": np.asarray(labels, np.int8), **columns}
    small |= {key: np.asarray(value) for key, value in (members or {}).items()}
    with atomic_file(path, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with archive.open(zipfile.ZipInfo("activations.npy"), "w", force_zip64=True) as member:
            member.write(_header(shape, dtype))
            _write_blocks(member, blocks, shape, np.dtype(dtype), where)
        for key, value in small.items():
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), _npy(value))


def _write_blocks(
    member: io.IOBase, blocks: Iterable[np.ndarray], shape: Sequence[int], dtype: np.dtype, where: str
) -> None:
    done = 0
    for block in blocks:
        if block.shape[1:] != tuple(shape[1:]):
            raise ValueError(f"a block of shape {block.shape} for {tuple(shape)}")
        with np.errstate(over="ignore"):  # what does not fit becomes infinite and is refused in words
            narrow = np.ascontiguousarray(block, dtype.newbyteorder("<"))
        if not np.isfinite(narrow).all():
            row = int(np.argmin(np.isfinite(narrow).reshape(len(narrow), -1).all(1)))
            finite = bool(np.isfinite(block[row]).all())
            raise InputError(
                f"row {done + row} holds a value that {dtype} cannot hold"
                if finite
                else f"row {done + row} is not finite",
                where=where,
                why="every value of an export is a finite number",
                fix="write it as float32" if finite else "leave that example out, or compute it in float32",
            )
        member.write(memoryview(narrow).cast("B"))
        done += len(block)
    if done != shape[0]:
        raise ValueError(f"{done} rows for {shape[0]}")


def _header(shape: Sequence[int], dtype: str) -> bytes:
    file = io.BytesIO()
    described = {"descr": np.dtype(dtype).newbyteorder("<").str, "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()


def _npy(value: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, value, allow_pickle=False)
    return file.getvalue()


def _texts(values: Sequence[str], where: str) -> np.ndarray:
    """The texts as one array, NFC and without white space around them. NumPy gives each the room of the longest."""
    room = 4 * len(values) * max(map(len, values), default=0)
    check_size(room, COLUMN_BYTES, what="the column", where=where, fix="shorten its longest texts")
    return np.array(as_texts(np.array([str(value) for value in values]), where))
