"""Files and folders that are whole or not there: written beside the old ones, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from refusal_core.errors import InputError, WorkError, one_line

# Left in folders by file managers: no reason to refuse a folder, and nobody's work.
_LITTER = {".DS_Store", "Thumbs.db", "desktop.ini"}
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # from linux/fcntl.h and linux/fs.h


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open `path` for writing ("w": UTF-8, line ends kept; or "wb") so that it is the old file or the whole new one.

    The work goes to a hidden file beside it, which is synced and renamed at the end, and removed on any exception. A
    symbolic link is written through to its target; an old file's permissions are kept, a new one has those of the
    umask; pipes and devices (/dev/null) are written directly. Raises InputError when `path` is a folder or its folder
    is missing, and WorkError when the disk is full, something is write-protected, and the like.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f'mode must be "w" or "wb", not {mode!r}')
    text = {} if mode == "wb" else {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    shown = os.fspath(path)
    with _as_work_error(shown):
        target, old = _target(shown)
        if old and stat.S_ISDIR(old.st_mode):
            raise InputError("it is a folder", where=shown, why="a file is to be written", fix="name a file in it")
        if old and not os.access(target, os.W_OK):
            raise WorkError(f"{one_line(shown)} cannot be written: it is write-protected.")
        direct = (old and not stat.S_ISREG(old.st_mode)) or os.path.abspath(shown).startswith(("/dev/", "/proc/"))
        beside = shown if direct else _beside(target)
        file = open(beside, mode if direct else mode.replace("w", "x"), **text)  # noqa: SIM115
    try:
        with _as_work_error(shown, only=_FULL), file:
            yield file
            with _as_work_error(shown):
                file.flush()
                if not direct:
                    os.fsync(file.fileno())
        if not direct:
            with _as_work_error(shown):
                if old:
                    os.chmod(beside, stat.S_IMODE(old.st_mode))
                os.replace(beside, target)
            _sync_folder(os.path.dirname(target))
    except BaseException:
        if not direct:
            with contextlib.suppress(OSError):
                os.unlink(beside)
        raise


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str], expected_names: Iterable[str]) -> Iterator[Path]:
    """Give a hidden folder beside `path` to fill; at the end it becomes `path`, whole, in place of an earlier one.

    `expected_names` are the files and folders that may lie directly in it. Raises InputError before any work when
    `path` is a file, the current folder, a mount point, or holds another name (so that nobody's files are lost), or
    when its parent is missing; WorkError as `atomic_file` does; ValueError when the caller wrote another name. On any
    exception the old folder is as it was. Old and new change places in one step on Linux; elsewhere in two, and if a
    kill falls between them the next call puts the old folder back.
    """
    shown, expected = os.fspath(path), frozenset(expected_names)
    with _as_work_error(shown):
        target, _ = _target(shown)
        aside = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.refusal-old")
        if os.path.isdir(aside) and not os.path.lexists(target):
            os.rename(aside, target)
        _check_replaceable(target, expected, shown)
        beside = _beside(target)
        os.mkdir(beside)
    try:
        with _as_work_error(shown, only=_FULL):
            yield Path(beside)
        if others := sorted(set(os.listdir(beside)) - expected):
            raise ValueError(f"written but not among the expected names: {', '.join(others)}")
        with _as_work_error(shown):
            _sync_tree(beside)
            if os.path.isdir(target):
                os.chmod(beside, stat.S_IMODE(os.stat(target).st_mode))
                replaced = _exchange(beside, target, aside)
                _keep_strangers(replaced, target, expected)
                shutil.rmtree(replaced, ignore_errors=True)
            else:
                os.rename(beside, target)
        _sync_folder(os.path.dirname(target))
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextlib.contextmanager
def _as_work_error(shown: str, only: frozenset[int] | None = None) -> Iterator[None]:
    """Turn what the operating system refuses for the output `shown` into one sentence.

    Around the caller's own work `only` keeps the errors that a full disk gives: others may come from its inputs.
    """
    try:
        yield
    except OSError as error:
        if only is not None and error.errno not in only:
            raise
        reason = (error.strerror or str(error)).lower()
        raise WorkError(f"{one_line(shown)} cannot be written: {reason}.") from error


def _target(shown: str) -> tuple[str, os.stat_result | None]:
    """The path that symbolic links lead to, and its state when there is something; InputError for no place to write."""
    try:
        old = os.stat(shown)
    except (FileNotFoundError, NotADirectoryError):
        old = None
    except ValueError:  # a NUL byte, or a character that no file name can hold
        raise InputError("it is not a file name", where=shown, fix="name another file") from None
    target = os.path.realpath(shown)
    if not shown or not os.path.isdir(os.path.dirname(target)):
        raise InputError(
            "the folder to write in does not exist", where=shown or "output", fix="create it first, or name another"
        )
    return target, old


def _beside(target: str) -> str:
    return os.path.join(os.path.dirname(target), f".refusal-{secrets.token_hex(8)}.part")


def _check_replaceable(target: str, expected: frozenset[str], shown: str) -> None:
    if not os.path.lexists(target):
        return
    if not os.path.isdir(target):
        raise InputError("it is a file", where=shown, why="a folder is to be written", fix="name another folder")
    if others := sorted(set(os.listdir(target)) - expected - _LITTER):
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise InputError(
            f"the folder holds other files ({', '.join(others[:3])}{more})",
            where=shown,
            why="it would be replaced as a whole",
            fix="name a new or empty folder, or move them away",
        )
    here = Path(os.path.realpath(os.getcwd()))
    if os.path.ismount(target) or here.is_relative_to(target):
        raise InputError(
            "the current folder and mount points cannot be replaced as a whole", where=shown, fix="name a folder in it"
        )


def _exchange(new: str, old: str, aside: str) -> str:
    """Put the folder `new` in the place of `old`; the path where the old one lies now, which is `new` or `aside`."""
    if _swap_in_one_step(new, old):
        return new
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(old, aside)
    try:
        os.rename(new, old)
    except BaseException:
        os.rename(aside, old)
        raise
    return aside


def _swap_in_one_step(one: str, other: str) -> bool:
    """Exchange two folders by Linux's renameat2; False where system or file system cannot."""
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    return renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0


def _keep_strangers(replaced: str, target: str, expected: frozenset[str]) -> None:
    """Carry over what somebody put into the old folder after it was checked."""
    for name in set(os.listdir(replaced)) - expected - _LITTER:
        os.rename(os.path.join(replaced, name), os.path.join(target, name))


def _sync_tree(folder: str) -> None:
    if os.name == "nt":  # flushing needs a handle that writes there
        return
    for parent, _, names in os.walk(folder):
        for name in names:
            handle = os.open(os.path.join(parent, name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        _sync_folder(parent)


def _sync_folder(folder: str) -> None:
    """Make a rename in `folder` survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
