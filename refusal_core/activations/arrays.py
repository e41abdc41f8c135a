"""The activations member as rows: which types are read, which axis is the layer, and what makes a value unusable."""

from __future__ import annotations

import math

import numpy as np

from refusal_core.activations.container import CHUNK, UNPACK_ERRORS, Container, Member
from refusal_core.activations.header import Header, read_header
from refusal_core.errors import InputError, MissingPackage
from refusal_core.limits import ACTIVATION_BYTES, ACTIVATION_MAGNITUDE, check_size

BITS = ("float16", "bfloat16")


def read_activations(
    container: Container,
    member: Member,
    *,
    bits: str | None = None,
    layer_index: int | None = None,
    budget: int = ACTIVATION_BYTES,
) -> tuple[np.ndarray, str, int | None]:
    """The rows [n, d] in their own type and byte order, the type's name, and the number of layers of [n, layers, d].

    A stored member is mapped: nothing is copied. A deflated one is unpacked in pieces into an array of at most `budget`
    bytes, of which only the layer asked for is kept. `bits` ("float16" or "bfloat16") declares what 16-bit integers or
    typeless 2-byte values are. Raises InputError for another type, shape or size, and for damage; MissingPackage when
    bfloat16 is declared and ml_dtypes is not installed.
    """
    where = f'{container.name}, member "{member.key}"'
    header = read_header(container, member)
    dtype = _value_type(header.dtype, bits, where)
    layers = _check_shape(header, layer_index, where)
    if member.stored:
        raw = np.frombuffer(container.packed(member), header.dtype, math.prod(header.shape), header.size)
        rows = raw.reshape(header.shape, order="F" if header.fortran else "C")
        rows = rows if layers is None else rows[:, layer_index]
    else:
        rows = _unpacked(container, member, header, layer_index, budget, where)
    if dtype != header.dtype:
        rows = rows.astype(header.dtype.newbyteorder("="), copy=False).view(dtype)
    return rows, dtype.name, layers


def read_array(
    container: Container, member: Member, *, bits: str | None = None, budget: int = ACTIVATION_BYTES
) -> np.ndarray:
    """The whole member in its own shape, mapped where it is stored. Raises as `read_activations` for type and size."""
    where = f'{container.name}, member "{member.key}"'
    header = read_header(container, member)
    dtype = _value_type(header.dtype, bits, where)
    if member.stored:
        raw = np.frombuffer(container.packed(member), header.dtype, math.prod(header.shape), header.size)
        array = raw.reshape(header.shape, order="F" if header.fortran else "C")
    else:
        array = _unpacked(container, member, header, None, budget, where)
    return array if dtype == header.dtype else array.astype(header.dtype.newbyteorder("="), copy=False).view(dtype)


def check_values(rows: np.ndarray, ids: tuple[str, ...], where: str) -> float:
    """The largest absolute value of `rows` [n, d]. Raises InputError for NaN, infinity, or a value over 1e100."""
    largest, bad, first = 0.0, 0, None
    step = max(1, CHUNK // max(rows.shape[1], 1))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        block = (
            block
            if block.dtype.kind == "f" and block.dtype.isnative
            else block.astype(np.float32 if block.dtype.itemsize < 8 else np.float64)
        )
        top = _largest(block)
        if not top <= ACTIVATION_MAGNITUDE:  # NaN fails it too
            wrong = ~(np.abs(block.astype(np.float64)) <= ACTIVATION_MAGNITUDE)
            bad += int(wrong.sum())
            if first is None:
                row, column = (int(place[0]) for place in np.nonzero(wrong))
                first = start + row, column, float(block[row, column])
        else:
            largest = max(largest, top)
    if first is not None:
        row, column, value = first
        raise InputError(
            f"the value of dimension {column} is {value}",
            where=f'{where}, row {row} (id "{ids[row]}")',
            why=f"{bad:,} values in the file are not finite or above 1e100",
            fix="export again in float32, or leave those examples out",
        )
    return largest


def _largest(block: np.ndarray) -> float:
    """max |x|; NaN or infinity when there is one."""
    if block.dtype == np.float16:
        # Without its sign bit a half's bits rise with its magnitude, NaN and infinity on top: 100 times faster.
        bits = np.bitwise_and(block.view(np.uint16), 0x7FFF).max()
        return float(np.uint16(bits).view(np.float16))
    low, high = float(block.min()), float(block.max())
    return low if math.isnan(low) else max(-low, high)


def _value_type(dtype: np.dtype, bits: str | None, where: str) -> np.dtype:
    """The type to read the values as. Raises InputError when that would be a guess."""
    two_bytes = dtype.itemsize == 2 and (dtype.kind == "V" or dtype.kind in "iu")
    if bits is not None and two_bytes:
        return np.dtype(np.float16) if bits == "float16" else _bfloat16()
    if bits is not None:
        raise InputError(
            f"it is {dtype}, but {bits} bits were declared",
            where=where,
            why="only 16-bit integers and typeless 2-byte values hold such bits",
            fix="leave the declaration out",
        )
    if dtype.kind == "f" and dtype.itemsize in (2, 4, 8):
        return dtype
    why = "float16, float32 and float64 are read"
    fix = "export it again with .astype(numpy.float32)"
    if two_bytes:
        why = "such values are usually the bits of float16 or bfloat16 numbers, which is not guessed"
        fix = "export it as float32, or declare the bits: --bits bfloat16 or --bits float16"
    elif dtype.kind in "iu":
        why = "integers are usually quantised or half-precision bits"
    raise InputError(f"it is of type {dtype}", where=where, why=why, fix=fix)


def _bfloat16() -> np.dtype:
    try:
        import ml_dtypes
    except ImportError:
        raise MissingPackage("ml_dtypes", purpose="Reading bfloat16 activations", extra="activations") from None
    return np.dtype(ml_dtypes.bfloat16)


def _check_shape(header: Header, layer_index: int | None, where: str) -> int | None:
    """The number of layers, None for [n, d]."""
    shape = list(header.shape)
    if len(shape) not in (2, 3):
        raise InputError(
            f"it has shape {shape}",
            where=where,
            why="[examples, dimensions] or [examples, layers, dimensions] is needed",
            fix="reshape it, one row an example",
        )
    if 0 in shape:
        raise InputError(f"it has shape {shape}", where=where, why="nothing is in it", fix="export the examples again")
    if len(shape) == 2:
        if layer_index is not None:
            raise InputError(
                f"it has shape {shape}, without an axis of layers",
                where=where,
                why="a layer index was given",
                fix="leave --layer-index out (--layer describes the layer)",
            )
        return None
    layers = shape[1]
    if layer_index is None:
        raise InputError(
            f"it has shape {shape}, {layers} layers",
            where=where,
            why="one layer is studied at a time",
            fix=f"pick one by --layer-index 0 to {layers - 1}",
        )
    if not 0 <= layer_index < layers:
        raise InputError(
            f"there is no layer {layer_index} in shape {shape}",
            where=where,
            why=f"it has {layers} layers",
            fix=f"pick one by --layer-index 0 to {layers - 1}",
        )
    return layers


def _unpacked(
    container: Container, member: Member, header: Header, layer_index: int | None, budget: int, where: str
) -> np.ndarray:
    n, d = (*header.shape, 1)[0], (1, *header.shape)[-1]
    one_layer = layer_index is not None and not header.fortran
    held = n * d * header.dtype.itemsize if one_layer else header.data_bytes
    check_size(held, budget, what="it", where=where, fix="write it by numpy.savez, which does not pack, or split it")
    try:
        with container.stream(member) as stream:
            _fill(stream, np.empty(header.size, np.uint8))
            if one_layer:
                rows = np.empty((n, d), header.dtype)
                step = max(1, CHUNK // math.prod(header.shape[1:]))
                for start in range(0, n, step):
                    piece = np.empty((min(step, n - start), *header.shape[1:]), header.dtype)
                    _fill(stream, piece)
                    rows[start : start + step] = piece[:, layer_index]
            else:
                flat = np.empty(math.prod(header.shape), header.dtype)
                _fill(stream, flat)
                rows = flat.reshape(header.shape, order="F" if header.fortran else "C")
                rows = rows if layer_index is None else rows[:, layer_index]
            if stream.read(1):
                raise EOFError
    except UNPACK_ERRORS:
        raise container.damaged(member.key) from None
    return rows


def _fill(stream: object, array: np.ndarray) -> None:
    """Read exactly the array's bytes. Raises EOFError when the stream ends before."""
    target = memoryview(array.view(np.uint8).reshape(-1))
    filled = 0
    while filled < len(target):
        count = stream.readinto(target[filled : filled + CHUNK])
        if not count:
            raise EOFError
        filled += count
