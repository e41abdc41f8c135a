"""What a file is that is no NPZ, and how to make one of it."""

from __future__ import annotations

from refusal_core.errors import InputError

EXPORT_FIX = "write it with numpy.savez(FILE, activations=..., labels=..., ids=..., categories=...)"


def refuse_foreign(buffer: memoryview, name: str) -> None:
    """Raise InputError that says what the file is, when its first bytes are not those of a zip."""
    head = bytes(buffer[:64])
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    kind, fix = "not an NPZ file", EXPORT_FIX
    if not len(buffer):
        kind = "empty"
    elif head.startswith(b"\x93NUMPY"):
        kind, fix = "a single .npy array", "save it with labels, ids and categories by numpy.savez"
    elif text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        kind, fix = "a web page", "download the file itself, not the page about it"
    elif len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < max(len(buffer), 1):
        kind, fix = "a safetensors file", "load its tensors and write them with numpy.savez"
    elif head.startswith(b"\x89HDF"):
        kind, fix = "an HDF5 file", "load its arrays and write them with numpy.savez"
    elif head.startswith(b"PAR1"):
        kind, fix = "a Parquet file", "load its columns and write them with numpy.savez"
    elif head.startswith(b"\x80"):
        kind, fix = "a pickle", "load it where you trust it and write plain arrays with numpy.savez"
    elif head.startswith(b"\x1f\x8b"):
        kind, fix = "gzip-compressed", "unpack it first"
    elif head.startswith(b"version https://git-lfs"):
        kind, fix = "a Git LFS pointer", "fetch the file itself with git lfs pull"
    raise InputError(f"the file is {kind}", where=name, why="an .npz archive is needed", fix=fix)
