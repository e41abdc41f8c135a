"""Where files come from: a folder, uploads, or the members of an uploaded zip. What is read of them is bounded."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from refusal_core.errors import InputError, WorkError, one_line
from refusal_core.jobs import Job
from refusal_core.limits import RUN_DEPTH, RUN_FILES, check_size
from refusal_core.roots import natural_key
from refusal_core.runs.model import Problem

HEAD_BYTES = 4_096
_SKIPPED = frozenset(("__pycache__", "node_modules"))
_CHUNK = 1_000_000


@dataclass
class Blob:
    """One file: `name` below the folder with "/", and either where it lies or what it holds."""

    name: str
    size: int
    path: Path | None = None
    data: bytes | None = None

    def head(self) -> bytes:
        """The first bytes, at most HEAD_BYTES."""
        if self.data is not None:
            return self.data[:HEAD_BYTES]
        with self._open() as file:
            return file.read(HEAD_BYTES)

    def read(self, limit: int) -> bytes:
        """All bytes. Raises InputError when there are more than `limit`, also of a file that grows."""
        check_size(self.size, limit, what="the file", where=self.name, fix="log less often, or cut it")
        if self.data is not None:
            return self.data
        with self._open() as file:
            data = file.read(limit + 1)
        check_size(len(data), limit, what="the file", where=self.name, fix="log less often, or cut it")
        return data

    def digest(self) -> str:
        """SHA-256 of the content."""
        found = hashlib.sha256()
        if self.data is not None:
            found.update(self.data)
        else:
            with self._open() as file:
                while chunk := file.read(_CHUNK):
                    found.update(chunk)
        return found.hexdigest()

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        """The file, without waiting for a pipe. A disk that fails under it is a WorkError, too."""
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(self.path, flags), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise InputError("it is no regular file", where=self.name)
                yield file
        except OSError as error:
            raise WorkError(
                f"{one_line(self.name, 200)}: {one_line(error.strerror or str(error), 100).lower()}."
            ) from None


def files_below(folder: Path | str, job: Job | None = None) -> tuple[list[Blob], list[Problem]]:
    """Every file below the folder, in natural order, and what was left out: links that lead out, pipes, what is too
    deep or too much. Hidden files and folders are passed over without a word.

    Raises InputError when the folder cannot be opened.
    """
    root = Path(folder)
    real = _real_folder(root)
    found: list[Blob] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    stack = [("", real)]
    while stack:
        name, path = stack.pop()
        if job:
            job.check()
        if str(path) in seen:
            continue
        seen.add(str(path))
        try:
            entries = sorted(os.scandir(path), key=lambda entry: natural_key(entry.name))
        except OSError as error:
            problems.append(Problem(name + "/", f"the folder cannot be opened: {(error.strerror or '').lower()}"))
            continue
        folders = []
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            below = f"{name}/{entry.name}" if name else entry.name
            _sort(entry, below, real, found, folders, problems)
            if len(found) >= RUN_FILES:
                what = f"more than {RUN_FILES:,} files: this one and the rest were not looked at"
                return found, [*problems, Problem(below, what, "name a folder further down")]
        stack.extend(reversed(folders))
    return found, problems


def blobs_of(files: Iterable[tuple[str, bytes | Path]]) -> Iterator[Blob]:
    """Uploaded or picked files."""
    for name, content in files:
        if isinstance(content, bytes):
            yield Blob(name, len(content), data=content)
        else:
            yield Blob(name, os.stat(content).st_size, path=Path(content))


def _real_folder(root: Path) -> Path:
    try:
        real = Path(os.path.realpath(root))
        if real.is_dir():
            os.scandir(real).close()
            return real
    except PermissionError:
        raise InputError("the folder may not be opened", where=str(root), fix="ask its owner for permission") from None
    except (OSError, ValueError):
        pass
    if os.path.isfile(root):
        raise InputError("it is a file", where=str(root), why="a folder is expected", fix="name the folder it lies in")
    raise InputError("there is no such folder", where=str(root), fix="correct the path")


def _sort(entry: os.DirEntry, name: str, real: Path, found: list, folders: list, problems: list) -> None:
    """Put one entry where it belongs."""
    path = Path(entry.path)
    try:
        if entry.is_symlink() or os.name == "nt":
            path = Path(os.path.realpath(path))
            if not path.is_relative_to(real):
                problems.append(Problem(name, "it is a link that leads out of the folder", "copy the file here"))
                return
        state = os.stat(path)
    except OSError:
        problems.append(Problem(name, "it cannot be opened", "see whether a link leads nowhere"))
        return
    if stat.S_ISDIR(state.st_mode):
        if name.count("/") >= RUN_DEPTH:
            problems.append(Problem(name + "/", f"more than {RUN_DEPTH} folders below each other are not opened"))
        else:
            folders.append((name, path))
    elif stat.S_ISREG(state.st_mode):
        found.append(Blob(name, state.st_size, path=path))
    else:
        with suppress(ValueError):
            problems.append(Problem(name, "it is a pipe, socket or device, not a file", ours=False))


def fingerprint(folder: Path | str, job: Job | None = None) -> str:
    """SHA-256 of names, sizes and times of change of the files below a folder: another one when a run wrote more."""
    found = hashlib.sha256()
    for blob in files_below(folder, job)[0]:
        with suppress(OSError):
            found.update(
                f"{blob.name}\0{blob.size}\0{os.stat(blob.path).st_mtime_ns}\0".encode("utf-8", "surrogateescape")
            )
    return found.hexdigest()
