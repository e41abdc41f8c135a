import ctypes
import sys
from pathlib import Path

import pytest

from refusal_core import memory


def resident() -> int:
    """Bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux" or memory._trim() is None, reason="this C library keeps nothing to return")
def test_freed_memory_goes_back():
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    size = 50_000  # small enough to come from the heap, not from a mapping of its own
    blocks = [libc.malloc(size) for _ in range(1000)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    for block in blocks[:-1]:  # the last one holds the heap's end in place
        libc.free(block)
    before = resident()
    memory.give_back()
    assert before - resident() > 500 * size
    libc.free(blocks[-1])


def test_without_such_a_call_nothing_happens(monkeypatch):
    monkeypatch.setattr(memory, "_trim", lambda: None)
    memory.give_back()
