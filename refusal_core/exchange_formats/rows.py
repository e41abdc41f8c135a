"""What every format reader yields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Row(NamedTuple):
    """A row as its format holds it. `error` says why it is of no use; `values` is what could be read all the same."""

    line: int  # from 1: line of the file, or row (Parquet, JSON array)
    values: Mapping[str, object] | None
    error: str | None = None
