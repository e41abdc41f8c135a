"""The NPZ container: what the file is, and whether its members can be read safely, before anything is allocated.

Everything works on one buffer of the whole file: a read-only map of a file on disk, or the bytes of an upload. So the
digest, the checks and the arrays are of the same bytes, and the disk is read once.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import os
import re
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from refusal_core.activations.foreign import refuse_foreign
from refusal_core.errors import InputError, WorkError
from refusal_core.limits import (
    ACTIVATION_FILE_BYTES,
    DEFLATE_RATIO,
    DEFLATE_RATIO_FROM,
    NPZ_MEMBERS,
    check_size,
    show_bytes,
)

CHUNK = 1 << 20
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")  # signature ... name length, extra length (APPNOTE.TXT 4.3.7)
_ENCRYPTED = 0x1 | 0x40
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Member:
    """One checked member. `key` is its name without ".npy"; `offset` is where its packed bytes begin in the file."""

    key: str
    info: zipfile.ZipInfo
    offset: int

    @property
    def stored(self) -> bool:
        return self.info.compress_type == zipfile.ZIP_STORED


class Container:
    """The members of an NPZ by key. Use `open_container`; close by dropping it and every array mapped from it."""

    def __init__(self, buffer: memoryview, name: str) -> None:
        """Raises InputError for all that is not a sound NPZ. `buffer` holds the whole file, `name` is for messages."""
        self.buffer, self.name = buffer, name
        refuse_foreign(buffer, name)
        self._zip = _opened(buffer, name)
        self._sound: set[str] = set()
        self.members = _checked_members(self._zip, buffer, name)

    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the whole file."""
        digest = hashlib.sha256()
        for start in range(0, len(self.buffer), CHUNK):
            digest.update(self.buffer[start : start + CHUNK])
        return digest.hexdigest()

    def packed(self, member: Member) -> memoryview:
        """The bytes of a stored member, checked against its CRC once. Raises InputError where they differ."""
        piece = self.buffer[member.offset : member.offset + member.info.compress_size]
        if member.key in self._sound:
            return piece
        crc = 0
        for start in range(0, len(piece), CHUNK):
            crc = zlib.crc32(piece[start : start + CHUNK], crc)
        if crc != member.info.CRC:
            raise self.damaged(member.key)
        self._sound.add(member.key)
        return piece

    def stream(self, member: Member) -> BinaryIO:
        """A member's unpacked bytes as a stream; reading it may raise what `unpack_errors` lists."""
        return self._zip.open(member.info)

    def damaged(self, key: str) -> InputError:
        return InputError(
            "its bytes are damaged",
            where=f'{self.name}, member "{key}"',
            why="they do not match their checksum or end early",
            fix="copy or export the file again",
        )


UNPACK_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, RuntimeError)


def open_container(source: str | os.PathLike[str] | BinaryIO | bytes | Container, name: str) -> Container:
    """The container of a path (mapped), of bytes, or of a binary file (read from its start); an open one as it is.

    Raises InputError when there is no such file or it is not a sound NPZ, WorkError when it cannot be read.
    """
    if isinstance(source, Container):
        return source
    if isinstance(source, (str, os.PathLike)):
        return Container(_mapped(Path(source), name), name)
    if isinstance(source, (bytes, bytearray)):
        raw = memoryview(source)
    else:
        source.seek(0)
        raw = source.getbuffer() if isinstance(source, io.BytesIO) else memoryview(source.read())
    check_size(len(raw), ACTIVATION_FILE_BYTES, what="the file", where=name, fix="split the export")
    return Container(raw.toreadonly(), name)


def _mapped(path: Path, name: str) -> memoryview:
    try:
        if path.is_dir():
            raise InputError("it is a folder", where=name, why="an .npz file is needed", fix="name a file in it")
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise InputError(
                    "it is a pipe or a device",
                    where=name,
                    why="a file on disk is mapped",
                    fix="save it as a file first",
                )
            size = state.st_size
            check_size(size, ACTIVATION_FILE_BYTES, what="the file", where=name, fix="split the export")
            if size == 0:  # nothing can be mapped
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        raise InputError(
            "there is no such file", where=name, why="an .npz file is needed", fix="correct the path"
        ) from None
    except ValueError:  # a NUL byte in the path
        raise InputError(
            "it is not a file name", where=name, why="an .npz file is needed", fix="correct the path"
        ) from None
    except OSError as error:
        raise WorkError(f"{name} cannot be read: {(error.strerror or str(error)).lower()}.") from error


def _opened(buffer: memoryview, name: str) -> zipfile.ZipFile:
    end = bytes(buffer[-65_557:])  # the longest comment and the record that ends a zip
    place = end.rfind(b"PK\x05\x06")
    if place >= 0 and len(end) - place >= 22:
        count = int.from_bytes(end[place + 10 : place + 12], "little")
        if count > NPZ_MEMBERS:
            raise _too_many(count, name)
    try:
        return zipfile.ZipFile(_View(buffer))
    except (zipfile.BadZipFile, struct.error, OSError, ValueError, NotImplementedError, EOFError):
        raise InputError(
            "the archive is damaged or cut short",
            where=name,
            why="its table of contents cannot be read",
            fix="copy or export the file again",
        ) from None


def _too_many(count: int, name: str) -> InputError:
    return InputError(
        f"the archive holds {count:,} members",
        where=name,
        why=f"at most {NPZ_MEMBERS:,} are read",
        fix="keep only activations, labels, ids and categories",
    )


def _checked_members(archive: zipfile.ZipFile, buffer: memoryview, name: str) -> dict[str, Member]:
    infos = archive.infolist()
    if len(infos) > NPZ_MEMBERS:
        raise _too_many(len(infos), name)
    if any(re.fullmatch(r"(.*/)?data\.pkl", info.filename) for info in infos):
        raise InputError(
            "the file is a PyTorch archive",
            where=name,
            why="it holds a pickle, which can run code and is never opened",
            fix="load the tensors where you trust them and write them with numpy.savez",
        )
    members: dict[str, Member] = {}
    for info in infos:
        if info.filename.endswith("/"):
            continue
        member = _checked(info, buffer, name)
        if member.key in members:
            raise InputError(
                "two members have this name",
                where=f'{name}, member "{member.key}"',
                why="readers differ in which one they take",
                fix="write the file again with each name once",
            )
        members[member.key] = member
    return members


def _checked(info: zipfile.ZipInfo, buffer: memoryview, name: str) -> Member:
    key = info.filename.removesuffix(".npy")
    where = f'{name}, member "{key}"'
    if re.match(r"[/\\]|[A-Za-z]:", key) or ".." in re.split(r"[/\\]", key):
        raise InputError(
            "its name is a path that leads out of the archive",
            where=where,
            why="unpacking it would write elsewhere",
            fix="write the file again by numpy.savez",
        )
    if info.flag_bits & _ENCRYPTED:
        raise InputError(
            "it is encrypted", where=where, why="no password is asked for", fix="write the file without a password"
        )
    if info.compress_type not in _METHODS:
        raise InputError(
            f"it is packed by method {info.compress_type}",
            where=where,
            why="only stored and deflated members are read",
            fix="write the file by numpy.savez or numpy.savez_compressed",
        )
    start, damaged = (
        info.header_offset,
        InputError(
            "its place in the archive contradicts the table of contents",
            where=where,
            why="name, size or position differ",
            fix="copy or export the file again",
        ),
    )
    if start < 0 or start + _LOCAL_HEADER.size > len(buffer):
        raise damaged
    signature, _, flags, method, *_, name_length, extra = _LOCAL_HEADER.unpack_from(buffer, start)
    offset = start + _LOCAL_HEADER.size + name_length + extra
    local_name = bytes(buffer[start + _LOCAL_HEADER.size : start + _LOCAL_HEADER.size + name_length])
    encoded = info.orig_filename.encode("utf-8" if flags & 0x800 else "cp437", "replace")
    stored = info.compress_type == zipfile.ZIP_STORED
    if signature != b"PK\x03\x04" or method != info.compress_type or local_name != encoded:
        raise damaged
    if offset + info.compress_size > len(buffer) or (stored and info.compress_size != info.file_size):
        raise damaged
    if info.file_size > DEFLATE_RATIO_FROM and info.file_size > DEFLATE_RATIO * info.compress_size:
        raise InputError(
            f"it unpacks from {show_bytes(info.compress_size)} to {show_bytes(info.file_size)}",
            where=where,
            why=f"a large member may grow {DEFLATE_RATIO} times at most",
            fix="write it by numpy.savez, which does not pack",
        )
    return Member(key, info, offset)


class _View(io.RawIOBase):
    """A buffer as a seekable binary file, without a copy of it."""

    def __init__(self, buffer: memoryview) -> None:
        self._buffer, self._at = buffer, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._buffer)}[whence]
        if at < 0:
            raise OSError("before the start")  # what zipfile expects of a file
        self._at = at
        return at

    def readinto(self, target: memoryview) -> int:
        piece = self._buffer[self._at : self._at + len(target)]
        target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
