"""Zip archives read in memory: names, sizes, ratios are checked before anything is unpacked; nothing goes to disk."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from refusal_core.errors import InputError, one_line
from refusal_core.limits import (
    DEFLATE_RATIO,
    DEFLATE_RATIO_FROM,
    ZIP_BYTES,
    ZIP_MEMBERS,
    ZIP_NAME_CHARACTERS,
    check_size,
    show_bytes,
)

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK = 1_000_000


@dataclass(frozen=True)
class Member:
    """One file of an archive: `name` with "/" between folders and no way out of them, `size` unpacked, as stated."""

    name: str
    size: int
    info: zipfile.ZipInfo


class Zip:
    """An archive that passed the first look. `members` are its files, folders and links left out."""

    def __init__(self, file: zipfile.ZipFile, name: str, limit: int) -> None:
        self._file, self.name = file, name
        infos = file.infolist()
        if len(infos) > ZIP_MEMBERS:
            raise InputError(f"it holds {len(infos):,} files", where=name, why=f"at most {ZIP_MEMBERS:,} are read")
        self.members = tuple(member for info in infos if (member := _member(info, name)))
        if len({member.name for member in self.members}) < len(self.members):
            raise InputError("two of its files have one name", where=name, fix="pack it again")
        total = sum(member.size for member in self.members)
        check_size(total, limit, what="its content", where=name, fix="pack fewer files")

    def read(self, member: Member, limit: int) -> bytes:
        """The whole member. Raises InputError when it is larger than `limit` or than it states, or damaged."""
        where = f"{self.name}, {one_line(member.name, 100)}"
        check_size(member.size, limit, what="the file", where=where, fix="leave it out")
        if member.info.flag_bits & 0x1:
            raise InputError("it is encrypted", where=where, fix="pack it without a password")
        if member.info.compress_type not in _METHODS:
            raise InputError("it is packed in an unusual way", where=where, fix="pack it with deflate")
        try:
            with self._file.open(member.info) as stream:
                data = stream.read(member.size + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError):
            raise InputError("it is damaged", where=where, fix="pack it again") from None
        if len(data) != member.size:
            raise InputError("it is not as large as the archive says", where=where, fix="pack it again")
        return data


@contextmanager
def open_zip(source: Path | str | bytes | BinaryIO, name: str, limit: int = ZIP_BYTES) -> Iterator[Zip]:
    """The archive, its stated content at most `limit` bytes. Raises InputError for one that is unsafe or none."""
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with zipfile.ZipFile(stream) as file:
            yield Zip(file, name, limit)
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, UnicodeDecodeError) as error:
        raise InputError(f"it is no whole zip archive ({one_line(str(error), 100)})", where=name) from None


def _member(info: zipfile.ZipInfo, archive: str) -> Member | None:
    """A file of the archive; None for a folder, a link or litter. InputError for what no honest archive holds."""
    raw = info.filename
    shown = one_line(raw, 100)
    if len(raw) > ZIP_NAME_CHARACTERS:
        raise InputError(f"a file name of {len(raw):,} characters", where=archive, fix="pack it again")
    parts = raw.replace("\\", "/").split("/")
    if raw.startswith(("/", "\\")) or ".." in parts or (len(raw) > 1 and raw[1] == ":"):
        raise InputError(f'the name "{shown}" leads out of the archive', where=archive, fix="pack it again")
    is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
    if info.is_dir() or is_link or "__MACOSX" in parts:
        return None
    packed = max(info.compress_size, 1)
    if info.file_size > DEFLATE_RATIO_FROM and info.file_size / packed > DEFLATE_RATIO:
        raise InputError(
            f'"{shown}" unpacks {show_bytes(info.compress_size)} to {show_bytes(info.file_size)}',
            where=archive,
            why="no real file packs so well",
            fix="leave it out",
        )
    return Member("/".join(part for part in parts if part not in ("", ".")), info.file_size, info)
