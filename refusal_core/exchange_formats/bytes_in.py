"""A file or stream as bounded lines of UTF-8, after a look at its first bytes; the source need not be able to seek."""

from __future__ import annotations

import codecs
import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from refusal_core.errors import InputError, WorkError, one_line

_CHUNK_BYTES = 64_000
_HEAD_BYTES = 4_096
_SPACE = b" \t\r\n"

PARQUET = b"PAR1"
_GUNZIP = "unpack it first"
_EXPORT = "export it as CSV or JSON lines"
_FOREIGN = (
    (
        b"version https://git-lfs.github.com/spec/",
        "is a Git LFS pointer, not the data",
        "fetch the data with git lfs pull",
    ),
    (b"PARE", "is an encrypted Parquet file", "write it without encryption"),
    (b"\x1f\x8b", "is gzip-compressed", _GUNZIP),
    (b"BZh", "is bzip2-compressed", _GUNZIP),
    (b"\xfd7zXZ\x00", "is xz-compressed", _GUNZIP),
    (b"\x28\xb5\x2f\xfd", "is zstd-compressed", _GUNZIP),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive", _GUNZIP),
    (b"SQLite format 3\x00", "is an SQLite database", _EXPORT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an old Office document", _EXPORT),
    (b"\x93NUMPY", "is a NumPy array", _EXPORT),
    (b"\x89HDF\r\n", "is an HDF5 file", _EXPORT),
    (b"ARROW1", "is an Arrow file", "write it as Parquet"),
    (b"\xff\xff\xff\xff", "is an Arrow stream", "write it as Parquet"),
    (b"Obj\x01", "is an Avro file", _EXPORT),
    (b"%PDF-", "is a PDF document", _EXPORT),
    (b"{\\rtf", "is an RTF document", _EXPORT),
    (b"\x89PNG", "is a picture", ""),
    (b"\xff\xd8\xff", "is a picture", ""),
)
_UTF32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Source:
    """An opened source: `name` for messages, `stream` at its start, `seekable`, and its first bytes, `head`.

    Read either `lines()` or, for Parquet, `stream` and `chunks()`.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.stream, self.name = stream, name
        self.seekable = _rewound(stream)
        self._chunks = _read(stream, name)
        self.head = _take_head(self._chunks)

    def chunks(self) -> Iterator[bytes]:
        """All bytes, the head included; once."""
        return chain((self.head,), self._chunks)

    def lines(self) -> Lines:
        """The bytes as lines of UTF-8 without BOM; once. UTF-16 with a BOM is converted on the way."""
        if self.head.startswith(_UTF16):
            return Lines(_from_utf16(self.chunks(), self.name))
        return Lines(chain((self.head.removeprefix(codecs.BOM_UTF8),), self._chunks))

    def refuse_foreign(self) -> None:
        """Raise InputError, naming what it is, for content that no reader here reads."""
        head = self.head
        for magic, what, fix in _FOREIGN:
            if head.startswith(magic) and not head.startswith(_UTF32):
                raise self.error(what, fix=fix)
        if head.startswith(b"PK\x03\x04"):
            raise self.error(f"is {_kind_of_zip(head)}", fix="export one table of it as CSV or JSON lines")
        if len(head) > 2 and head[0] == 0x80 and head[1] in (2, 3, 4, 5):
            raise self.error("is a pickle, which is never opened", fix=_EXPORT)
        text = head.removeprefix(codecs.BOM_UTF8).lstrip(_SPACE)
        if text[:14].lower() == b"<!doctype html" or text[:5].lower() in (b"<html", b"<?xml", b"<head", b"<body"):
            what = "XML" if text[:5].lower() == b"<?xml" else "an HTML page"
            raise self.error(
                f"is {what}, not the data", fix="a sign-in or error page was perhaps saved in place of the file"
            )
        if head.startswith(_UTF32):
            raise self.error("is UTF-32 text", fix="save it as UTF-8")
        if not head.startswith(_UTF16) and len(head) > 8 and (not any(head[0:64:2]) or not any(head[1:64:2])):
            raise self.error("looks like UTF-16 without a byte order mark", fix="save it as UTF-8")

    def error(self, what: str, *, why: str = "", fix: str = "") -> InputError:
        return InputError(f"the file {what}", where=self.name, why=why, fix=fix)


class Lines:
    """Lines of a byte stream with the line break kept, and `number`, the one of the line read last (from 1)."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._stream = io.BufferedReader(_Chunks(chunks), _CHUNK_BYTES)
        self._held = b""
        self.number = 0

    def next(self, limit: int) -> bytes:
        """The next line, b"" at the end; of a longer line, its first `limit` bytes."""
        line, self._held = self._held or self._stream.readline(limit), b""
        self.number += bool(line)
        return line

    def hold(self, line: bytes) -> None:
        """Put back the line that was read last."""
        self._held = line
        self.number -= bool(line)

    def skip_rest(self, limit: int) -> None:
        """Pass over what is left of a line that `next` cut."""
        while (piece := self._stream.readline(limit)) and not piece.endswith(b"\n"):
            pass

    def rest(self, limit: int) -> bytes:
        """All that is left, at most about `limit` bytes of it."""
        held, self._held = self._held, b""
        return held + self._stream.read(max(limit - len(held), 0))


@contextmanager
def opened(source: Path | str | BinaryIO, name: str | None = None) -> Iterator[Source]:
    """The source; a path is closed afterwards, a stream stays open, and one that can seek is read from its start.

    Raises InputError for a path that is no readable file, WorkError when the system fails to read.
    """
    if not isinstance(source, str | os.PathLike):
        yield Source(source, _stream_name(source) if name is None else show_name(name))
        return
    name = show_name(os.path.basename(source) or os.fspath(source)) if name is None else show_name(name)
    with _open(source, name) as stream:
        yield Source(stream, name)


def show_name(name: object) -> str:
    """`name` as one bounded line, for messages."""
    return one_line(str(name), 100)


def _open(path: str | os.PathLike[str], name: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the path
        raise InputError("there is no such file", where=name) from None
    except IsADirectoryError:
        raise InputError("it is a directory", where=name, fix="name one file in it") from None
    except PermissionError:
        raise InputError("it may not be read", where=name, fix="ask its owner for permission to read it") from None
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO):
            raise InputError("there is no such file", where=name) from None
        raise _failed(error, name) from None


def _failed(error: OSError, name: str) -> WorkError:
    return WorkError(f"{name}: reading failed: {one_line(error.strerror or str(error), 200)}.")


def _stream_name(stream: BinaryIO) -> str:
    name = getattr(stream, "name", None)
    if not isinstance(name, str) or not name:
        return "the input"
    return "standard input" if name == "<stdin>" else show_name(os.path.basename(name))


def _rewound(stream: BinaryIO) -> bool:
    """Whether the stream can seek; if so it is at its start now."""
    try:
        return stream.seekable() and stream.seek(0) == 0
    except (AttributeError, OSError):
        return False


def _read(stream: BinaryIO, name: str) -> Iterator[bytes]:
    read = getattr(stream, "read1", stream.read)  # read1 gives what a pipe has, where read waits for the whole chunk
    try:
        while chunk := read(_CHUNK_BYTES):
            yield bytes(chunk)
    except IsADirectoryError:
        raise InputError("it is a directory", where=name, fix="name one file in it") from None
    except OSError as error:
        raise _failed(error, name) from None


def _take_head(chunks: Iterator[bytes]) -> bytes:
    """The first bytes: up to the end of the first line with text, so that a slow pipe is not waited for."""
    head = b""
    while len(head) < _HEAD_BYTES and not (len(head) >= 16 and b"\n" in head.lstrip(_SPACE)):
        chunk = next(chunks, b"")
        if not chunk:
            break
        head += chunk
    return head


def _from_utf16(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    decode = codecs.getincrementaldecoder("utf-16")().decode
    try:
        for chunk in chunks:
            yield decode(chunk).encode()
        yield decode(b"", True).encode()
    except UnicodeDecodeError:
        raise InputError("it is not whole UTF-16 text", where=name, fix="save it as UTF-8") from None


def _kind_of_zip(head: bytes) -> str:
    for mark, kind in (
        (b"xl/", "an Excel workbook"),
        (b"[Content_Types].xml", "an Office document"),
        (b".npy", "a NumPy archive"),
        (b"data.pkl", "a PyTorch file, which is never opened"),
    ):
        if mark in head:
            return kind
    return "a zip archive"


class _Chunks(io.RawIOBase):
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._left = chunks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size
