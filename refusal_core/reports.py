"""What leaves the project as a file: strict JSON and safe CSV; and, from `atomic`, files that are whole or not there.

Lone surrogates (half a character, as a cut JavaScript string holds) cannot be written as UTF-8 and are refused by
strict JSON readers. Here they become their own escape as text, for example the six characters \\ud83d.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from typing import IO, Any

import numpy as np

from refusal_core.atomic import atomic_file, atomic_folder

__all__ = ["FORMULA_STARTS", "atomic_file", "atomic_folder", "to_json", "write_csv"]

# A spreadsheet runs a cell that starts so as a formula; the last four are read as their ASCII twins in some locales.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def to_json(obj: Any, indent: int | None = None) -> str:
    """`obj` as JSON that every reader takes: ASCII, NaN and infinities as null, keys in the order given.

    Takes what JSON has, tuples, numpy scalars and arrays, dataclasses, and pydantic models (under their aliases);
    keys are strings or whole numbers. Raises TypeError for other types, sets among them, and ValueError when two keys
    of one object are written the same.
    """
    return json.dumps(_plain(obj), indent=indent, allow_nan=False)


def write_csv(file: IO[str], header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write RFC 4180 CSV (CRLF) that no spreadsheet runs: text that could start a formula gets an apostrophe before it.

    Numbers stay numbers, negative ones too; None, NaN and infinities are empty cells; booleans are true and false.
    `file` is open for text with newline="", as `atomic_file` gives it. Raises ValueError for a row of another length.
    """
    writer = csv.writer(file)
    header = [_csv_cell(cell) for cell in header]
    writer.writerow(header)
    for number, row in enumerate(rows, start=1):
        cells = [_csv_cell(cell) for cell in row]
        if len(cells) != len(header):
            raise ValueError(f"row {number} has {len(cells)} cells, the header {len(header)}")
        writer.writerow(cells)


def _plain(obj: Any) -> Any:
    """`obj` as dicts, lists, strings, ints, finite floats, booleans and None."""
    if obj is None or isinstance(obj, (bool, np.bool_)):
        return None if obj is None else bool(obj)
    if isinstance(obj, str):
        return _writable(obj)
    if isinstance(obj, (int, np.integer)):
        return int(obj)
    if isinstance(obj, (float, np.floating)):
        return number if math.isfinite(number := float(obj)) else None
    if isinstance(obj, Mapping):
        return _plain_mapping(obj)
    if isinstance(obj, (list, tuple)):
        return [_plain(item) for item in obj]
    if isinstance(obj, np.ndarray):
        return _plain(obj.tolist())
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return {field.name: _plain(getattr(obj, field.name)) for field in dataclasses.fields(obj)}
    if hasattr(obj, "model_dump") and not isinstance(obj, type):
        return _plain(obj.model_dump(by_alias=True))
    raise TypeError(f"no JSON for {type(obj).__name__}")


def _plain_mapping(mapping: Mapping) -> dict:
    plain = {}
    for key, value in mapping.items():
        if isinstance(key, (bool, np.bool_)) or not isinstance(key, (str, int, np.integer)):
            raise TypeError(f"no JSON key for {type(key).__name__}")
        name = _writable(key) if isinstance(key, str) else str(int(key))
        if name in plain:
            raise ValueError(f"two keys are written {name!r}")
        plain[name] = _plain(value)
    return plain


def _writable(text: str) -> str:
    """`text` as a plain string with lone surrogates spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _csv_cell(cell: Any) -> Any:
    if isinstance(cell, (bool, np.bool_)):
        return "true" if cell else "false"
    if isinstance(cell, (int, np.integer)):
        return int(cell)
    if isinstance(cell, (float, np.floating)):
        return number if math.isfinite(number := float(cell)) else ""
    if cell is None:
        return ""
    text = _writable(str(cell))
    return "'" + text if text.startswith(FORMULA_STARTS) else text
