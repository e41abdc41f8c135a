"""The members beside the activations: labels, ids, categories and metadata, each with its rules."""

from __future__ import annotations

import math
import unicodedata

import numpy as np

from refusal_core.activations.container import UNPACK_ERRORS, Container, Member
from refusal_core.activations.header import read_header
from refusal_core.errors import InputError
from refusal_core.limits import COLUMN_BYTES, check_size


def read_column(container: Container, member: Member) -> np.ndarray:
    """A small member as an array of any plain type. Raises InputError for pickles, damage and sizes over 500 MB."""
    where = f'{container.name}, member "{member.key}"'
    header = read_header(container, member)
    check_size(header.data_bytes, COLUMN_BYTES, what="it", where=where, fix="shorten its texts")
    try:
        with container.stream(member) as stream:
            raw = stream.read()
    except UNPACK_ERRORS:
        raise container.damaged(member.key) from None
    if len(raw) != header.size + header.data_bytes:
        raise container.damaged(member.key)
    if not header.dtype.itemsize:  # numpy saves an array of empty strings as U0
        return np.zeros(header.shape, "U1")
    values = np.frombuffer(raw, header.dtype, math.prod(header.shape), header.size)
    return values.reshape(header.shape, order="F" if header.fortran else "C")


def check_length(shape: tuple[int, ...], n: int, activations: tuple[int, ...], where: str) -> None:
    """Raise InputError unless `shape` is [n]; names both shapes."""
    if shape == (n,):
        return
    fix = "export one value an example, in the order of the rows"
    if len(shape) == 1 and len(activations) == 2 and shape[0] == activations[1]:
        fix = "the activations look transposed: save activations.T"
    elif len(shape) > 1 and shape == (n, 1):
        fix = "flatten it with .ravel()"
    raise InputError(
        f"it has shape {list(shape)}, the activations have {list(activations)}",
        where=where,
        why=f"shape [{n}] is needed",
        fix=fix,
    )


def as_texts(values: np.ndarray, where: str) -> tuple[str, ...]:
    """Text of every value: NFC, without white space around it; bytes are UTF-8, whole numbers become digits.

    Raises InputError for other types, text that cannot be read, and a blank value (with its row and the count of all).
    """
    kind = values.dtype.kind
    if kind not in "USiu":
        raise InputError(
            f"it is of type {values.dtype}",
            where=where,
            why="text or whole numbers are needed",
            fix="save it with dtype=str",
        )
    if kind in "iu":
        return tuple(str(value) for value in values.tolist())
    try:
        if kind == "U" and _code_points(values).max(initial=0) > 0x10FFFF:  # numpy breaks off on such text
            raise ValueError
        items = values.tolist()
        texts = [item.decode("utf-8") if isinstance(item, bytes) else item for item in items]
    except (ValueError, UnicodeDecodeError):
        raise InputError(
            "it holds bytes that are no text", where=where, why="UTF-8 is read", fix="save it with dtype=str"
        ) from None
    texts = [unicodedata.normalize("NFC", text).strip() for text in texts]
    if blank := [row for row, text in enumerate(texts) if not text]:
        raise InputError(
            "the value is blank",
            where=f"{where}, row {blank[0]}",
            why=f"{len(blank):,} rows have none",
            fix="give every example one",
        )
    return tuple(texts)


def _code_points(values: np.ndarray) -> np.ndarray:
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    return native.reshape(-1).view(np.uint32)


def check_unique(ids: tuple[str, ...], where: str) -> None:
    """Raise InputError when an id stands twice; names both rows and counts all repeats."""
    if len(set(ids)) == len(ids):
        return
    seen: dict[str, int] = {}
    for row, name in enumerate(ids):
        if name in seen:
            raise InputError(
                f'the id "{name}" stands in row {seen[name]} already',
                where=f"{where}, row {row}",
                why=f"{len(ids) - len(set(ids)):,} rows repeat an id",
                fix="leave the repeated examples out, or give each its own id",
            )
        seen[name] = row


def as_labels(values: np.ndarray, ids: tuple[str, ...], where: str, meant: tuple[str, str] | None = None) -> np.ndarray:
    """The labels as int8 [n] of exactly 0 and 1. Raises InputError with row, id and value of the first other one.

    `meant` gives what stands for 0 and for 1 in the file, as `label_text` writes it, where that is something else.
    """
    if meant is not None:
        return _as_meant(values, ids, where, meant)
    kind = values.dtype.kind
    if kind not in "biuf":
        text = kind in "US"
        raise InputError(
            "they are text" if text else f"they are of type {values.dtype}",
            where=where,
            why="0 (not refused) and 1 (refused) are needed",
            fix="say which one is 0 and which is 1: --zero VALUE --one VALUE" if text else "save whole numbers",
        )
    wrong = ~((values == 0) | (values == 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        signs = set(np.unique(values).tolist()) == {-1, 1}
        raise InputError(
            f"the label is {values[row].item()!r}",
            where=f'{where}, row {row} (id "{ids[row]}")',
            why=f"{int(wrong.sum()):,} labels are neither 0 nor 1",
            fix="say so: --zero=-1 --one=1" if signs else "map every label to 0 or 1, or leave those examples out",
        )
    return (values == 1).astype(np.int8)


def label_text(value: object) -> str:
    """A label as text: whole numbers without a decimal point, text in NFC without white space around it."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return unicodedata.normalize("NFC", str(value)).strip()


def label_texts(values: np.ndarray) -> tuple[str, ...]:
    """The distinct labels of a member as text, in the order of their values; empty when it holds no plain values."""
    if values.dtype.kind not in "biufUS" or (
        values.dtype.kind == "U" and _code_points(values).max(initial=0) > 0x10FFFF
    ):
        return ()
    return tuple(dict.fromkeys(label_text(value) for value in np.unique(values).tolist()))


def _as_meant(values: np.ndarray, ids: tuple[str, ...], where: str, meant: tuple[str, str]) -> np.ndarray:
    zero, one = (label_text(text) for text in meant)
    if zero == one:
        raise InputError(f'"{one}" was given for 0 and for 1', where=where, fix="give two different labels")
    found = label_texts(values)
    strange = [text for text in found if text not in (zero, one)]
    if strange or not found:
        texts = [label_text(value) for value in values.tolist()] if found else []
        row = next((row for row, text in enumerate(texts) if text in strange), None)
        raise InputError(
            f'the label is "{strange[0]}"' if strange else f"they are of type {values.dtype}",
            where=where if row is None else f'{where}, row {row} (id "{ids[row]}")',
            why=f'only "{zero}" (0) and "{one}" (1) were named',
            fix="name the two labels that the file holds, or leave those examples out",
        )
    ones = [value for value in np.unique(values).tolist() if label_text(value) == one]
    return np.isin(values, np.array(ones, values.dtype)).astype(np.int8)


def as_metadata(values: np.ndarray) -> str | None:
    """One value as text, None when it is not one value: "12", [12] and 12 are the same."""
    if values.size != 1 or values.dtype.kind not in "USiuf":
        return None
    try:
        if values.dtype.kind == "U" and _code_points(values).max(initial=0) > 0x10FFFF:
            return None
        value = values.reshape(()).item()
        text = value.decode("utf-8") if isinstance(value, bytes) else str(value)
    except ValueError:  # UnicodeDecodeError is one
        return None
    if isinstance(value, float) and value.is_integer():
        text = str(int(value))
    return metadata_text(text) or None


def metadata_text(text: str) -> str:
    """`text` in the form that is compared: NFC, no white space around it, and no brackets around one value."""
    clean = unicodedata.normalize("NFC", str(text)).strip()
    if clean.startswith("[") and clean.endswith("]") and "," not in clean:
        clean = clean[1:-1].strip().strip("'\"")
    return clean
