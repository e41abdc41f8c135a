"""The data roots: the only folders that a page reads files from by name. A command may read any path.

What is checked: a typed path is compared with the roots before the file system is asked about it, so that a refusal
tells nothing about what lies outside (and no network share is contacted); then symbolic links are followed and the
result is compared again.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from refusal_core.errors import InputError
from refusal_core.limits import ENTRIES_VISITED, FILES_LISTED

SETTING = "REFUSAL_DATA"
DEFAULT_FOLDER = "data"


class Listing(list[tuple[str, Path]]):
    """Files as (name to show, path with links followed), in natural order. `cut` says that a limit left some out."""

    cut: bool = False


@dataclass(frozen=True)
class DataRoots:
    """The folders, as given; none means that nothing can be read by name."""

    roots: tuple[Path, ...]

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> DataRoots:
        """Roots from REFUSAL_DATA: one or more folders, with ":" between them (";" on Windows).

        Without it, or with an empty one, the root is the folder `data` in the current one when there is such a folder,
        and otherwise there is none. Relative folders start from the current one; `~` is not expanded. A folder named
        twice counts once. Raises InputError for one that is not there.
        """
        given = [part for part in env.get(SETTING, "").split(os.pathsep) if part.strip()]
        if not given:
            default = Path(DEFAULT_FOLDER).absolute()
            return cls((default,) if default.is_dir() else ())
        roots: dict[str, Path] = {}
        for part in given:
            if not os.path.isdir(part):
                raise InputError(
                    f'there is no folder "{part}"',
                    where=SETTING,
                    fix="create it, or correct the setting and start again",
                )
            roots.setdefault(os.path.realpath(part), Path(part).absolute())
        return cls(tuple(roots.values()))

    def resolve(self, typed: str) -> Path:
        """The file or folder that `typed` names, with symbolic links followed; it exists and lies inside a root.

        `typed` is a name as `files` shows it, a path relative to a root (the first root that has it wins), or an
        absolute path inside a root. `..` is refused and `~` is a name like any other. Raises InputError; for all that
        lies outside it says the same, whether it exists or not.
        """
        if not self.roots:
            raise InputError(
                "no data root is set", fix=f"set {SETTING} to a folder and start again, or upload the file instead"
            )
        if not typed.strip() or "\0" in typed:
            raise InputError("it is not a file name", where="path", fix="type a path below a data root")
        if ".." in re.split(r"[/\\]", typed):
            raise InputError('".." is not followed', where=typed, fix="type the path from the root down")
        inside = False
        real = self._real()
        for candidate, root, real_root in self._readings(typed):
            if not _is_below(candidate, (root, real_root)):
                continue
            try:
                found = Path(os.path.realpath(candidate))
                if not _is_below(found, real):
                    continue
                inside = True
                if found.exists():
                    return found
            except (OSError, ValueError):  # too long, not readable, or no possible file name
                inside = True
        if inside:
            raise InputError(
                "there is no such file or folder", where=typed, fix="pick one from the list, or correct it"
            )
        raise InputError(
            "it is not below a data root", where=typed, fix=f"move it there, or add its folder to {SETTING}"
        )

    def files(self, suffixes: Iterable[str] = (), *, names: Collection[str] = ()) -> Listing:
        """Files whose names end with one of `suffixes`, case ignored, or are one of `names` to the letter.

        The name is relative to the root with "/" between folders, and starts with the root's own name when there are
        several roots; `resolve` takes it back. In natural order (checkpoint-9 before checkpoint-10), at most
        FILES_LISTED after looking at no more than ENTRIES_VISITED; `cut` says that there were more. Hidden files and
        folders, folders that cannot be read, and links that lead out of the roots are left out.
        """
        endings = tuple(suffix.lower() for suffix in ([suffixes] if isinstance(suffixes, str) else suffixes))
        found = Listing()
        for looked_at, (name, path) in enumerate(self._entries()):
            wanted = path is not None and (name.lower().endswith(endings) or name.rpartition("/")[2] in names)
            if looked_at >= ENTRIES_VISITED or (wanted and len(found) >= FILES_LISTED):
                found.cut = True
                break
            if wanted:
                found.append((name, path))
        found.sort(key=lambda item: natural_key(item[0]))
        return found

    def _entries(self) -> Iterator[tuple[str, Path | None]]:
        """Every visible entry of all roots: (name to show, path of a regular file)."""
        seen: set[str] = set()
        for root, name in zip(self.roots, self._names(), strict=True):
            prefix = f"{name}/" if len(self.roots) > 1 else ""
            yield from ((prefix + below, path) for below, path in self._walk(root, seen))

    def _readings(self, typed: str) -> Iterator[tuple[Path, Path, Path]]:
        """What `typed` may mean, as (path, root, root with links followed): shown names first, then paths."""
        roots = list(zip(self.roots, self._real(), strict=True))
        if len(roots) > 1:
            for (root, real), name in zip(roots, self._names(), strict=True):
                if typed.startswith(f"{name}/"):
                    yield root / typed[len(name) :].lstrip("/"), root, real
        for root, real in roots:
            yield root / typed, root, real

    def _names(self) -> list[str]:
        """One short name a root, no two the same."""
        names: list[str] = []
        for root in self.roots:
            base = root.name or "root"
            tries = itertools.chain([base], (f"{base} ({number})" for number in itertools.count(2)))
            names.append(next(name for name in tries if name not in names))
        return names

    def _real(self) -> tuple[Path, ...]:
        return tuple(Path(os.path.realpath(root)) for root in self.roots)

    def _walk(self, root: Path, seen: set[str]) -> Iterator[tuple[str, Path | None]]:
        """Every entry below `root` that is not hidden, depth first in natural order: (name, path of a regular file)."""
        real = self._real()
        stack: list[tuple[str, Path]] = [("", Path(os.path.realpath(root)))]
        while stack:
            name, path = stack.pop()
            is_file = os.path.isfile(path)
            if name:
                yield name, path if is_file else None
            if is_file or str(path) in seen:  # a link may lead to a folder that was listed, or to one above itself
                continue
            seen.add(str(path))
            try:
                with os.scandir(path) as listing:
                    visible = (entry for entry in listing if not entry.name.startswith("."))
                    entries = list(itertools.islice(visible, ENTRIES_VISITED + 1))
            except OSError:  # not a folder, or not readable
                continue
            for entry in sorted(entries, key=lambda entry: natural_key(entry.name), reverse=True):
                # A Windows junction is no symbolic link to Python 3.11, but leads elsewhere too.
                linked = entry.is_symlink() or os.name == "nt"
                target = Path(os.path.realpath(path / entry.name)) if linked else path / entry.name
                if not linked or _is_below(target, real):
                    stack.append((f"{name}/{entry.name}" if name else entry.name, target))


def natural_key(name: str) -> list[tuple[list[tuple[int, str]], str]]:
    """Sorting key: folder by folder, digits as numbers, case ignored until nothing else differs."""

    def part_key(part: str) -> tuple[list[tuple[int, str]], str]:
        pieces = re.split("([0-9]+)", part)  # text at even places, digits at odd ones
        numbers = [piece.lstrip("0") for piece in pieces]
        return [
            (len(n), n) if i % 2 else (0, p.casefold()) for i, (p, n) in enumerate(zip(pieces, numbers, strict=True))
        ], part

    return [part_key(part) for part in name.split("/")]


def _is_below(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
