"""Give memory that is free again back to the system."""

from __future__ import annotations

import ctypes
from functools import cache


def give_back() -> None:
    """Have the C library return what it keeps of freed memory; does nothing where it has no such call (only glibc has).

    Every thread that computes leaves such a rest, which a server would otherwise hold until it ends.
    """
    if trim := _trim():
        trim(0)


@cache
def _trim():
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
