"""Who decides what a path in a suite stands for: the folder of the suite, or the data roots and uploads of a page."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from refusal_core.classifier import hub
from refusal_core.errors import InputError
from refusal_core.roots import DataRoots

STARTER, HUB = "starter", "hub:"


class Resolver(Protocol):
    """Turns the paths that a suite writes into what may be opened. Raises InputError for what may not."""

    def file(self, written: str) -> Path | bytes:
        """The file, or the content of an upload."""

    def folder(self, written: str) -> Path:
        """The folder."""

    def checkpoint(self, written: str) -> str:
        """The name that `classifier.load` takes."""


@dataclass(frozen=True)
class BesideSuite:
    """Paths start at the suite's own folder; any path may be named. For commands and for our own samples."""

    base: Path

    def file(self, written: str) -> Path:
        path = self._path(written)
        if not os.path.isfile(path):
            what = "it is a folder" if os.path.isdir(path) else "there is no such file"
            raise InputError(what, where=written, why="paths start at the suite's folder")
        return path

    def folder(self, written: str) -> Path:
        path = self._path(written)
        if not os.path.isdir(path):
            what = "it is a file" if os.path.exists(path) else "there is no such folder"
            raise InputError(what, where=written, why="paths start at the suite's folder")
        return path

    def checkpoint(self, written: str) -> str:
        if written == STARTER:
            return written
        if written.startswith(HUB):
            return written.removeprefix(HUB)
        return str(self.folder(written))

    def _path(self, written: str) -> Path:
        if not written.strip() or "\0" in written:
            raise InputError("it is no path", where=written or "an empty path", fix="name a file or a folder")
        return self.base / written


@dataclass(frozen=True)
class WithinRoots:
    """For a page: an upload of that name, else a path below the data roots, from `folder` (the suite's, "" for a root).

    `starter_only` and `hub` say which checkpoints may be loaded.
    """

    roots: DataRoots
    folder_name: str = ""
    uploads: Mapping[str, bytes] = field(default_factory=dict)
    starter_only: bool = False
    hub: bool = True

    def file(self, written: str) -> Path | bytes:
        for name in (written, posixpath.basename(written)):
            if name in self.uploads:
                return self.uploads[name]
        path = self._below(written)
        if not path.is_file():
            raise InputError("it is a folder", where=written, why="a file was expected")
        return path

    def folder(self, written: str) -> Path:
        path = self._below(written)
        if not path.is_dir():
            raise InputError("it is a file", where=written, why="a folder was expected")
        return path

    def checkpoint(self, written: str) -> str:
        if written == STARTER:
            return written
        if self.starter_only or (written.startswith(HUB) and not self.hub):
            raise InputError("only the starter can be loaded here", where=written, fix="give predictions instead")
        if written.startswith(HUB):
            return _hub_name(written.removeprefix(HUB))
        return str(self.folder(written))

    def _below(self, written: str) -> Path:
        joined = written if posixpath.isabs(written) else posixpath.join(self.folder_name, written)
        path = posixpath.normpath(joined) if joined.strip() else joined
        try:
            return self.roots.resolve(path)
        except InputError as problem:
            fix = (
                "upload the file, or name one below a data root"
                if self.uploads or not self.roots.roots
                else problem.fix
            )
            raise InputError(problem.what, where=written, why=problem.why, fix=fix) from None


def _hub_name(name: str) -> str:
    """`name`, which is surely none of a folder: the loader takes a folder first, wherever that lies."""
    if hub.parse_name(name) is None or os.path.lexists(name):
        raise InputError("this is no hub name", where=f"{HUB}{name}", fix="write it as hub:owner/name@revision")
    return name
