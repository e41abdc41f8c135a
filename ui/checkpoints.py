"""Which checkpoint is chosen: what the picker offers, and what its settings mean. No streamlit; nothing is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from refusal_core.classifier import hub
from refusal_core.classifier.checkpoint import STARTER, STARTER_FOLDER
from refusal_core.classifier.folder import WANTED
from refusal_core.errors import InputError
from refusal_core.limits import show_bytes
from refusal_core.roots import DataRoots

# Values of the picker; a folder below a data root is "folder:" and its name as DataRoots shows it.
FOLDER = "folder:"
TYPED_PATH = "path"
HUB = "hub"


@dataclass(frozen=True)
class Choice:
    """A checkpoint that can be loaded. `name` is what `load` and `--checkpoint` take, `shown` what a reader sees."""

    name: str
    shown: str
    kind: str  # "starter", "directory" or "hub", as in CheckpointInfo

    @property
    def folder(self) -> Path | None:
        """Where it lies on this machine; None for a hub checkpoint, which may not be here yet."""
        return {"starter": STARTER_FOLDER, "directory": Path(self.name)}.get(self.kind)

    @property
    def link_name(self) -> str | None:
        """Its name in a share link; None for a folder, which means nothing on another machine."""
        return None if self.kind == "directory" else self.name

    def stamp(self) -> tuple[tuple[str, int, int], ...]:
        """Names, sizes and times of its files: another stamp means that the folder was written again."""
        if self.folder is None or not self.folder.is_dir():
            return ()
        with os.scandir(self.folder) as entries:
            found = [(e.name, e.stat()) for e in entries if e.is_file() and any(fnmatch(e.name, w) for w in WANTED)]
        return tuple(sorted((name, status.st_size, status.st_mtime_ns) for name, status in found))

    def size(self) -> int:
        """Bytes of the files that loading reads; 0 when unknown."""
        return sum(size for _, size, _ in self.stamp())


STARTER_CHOICE = Choice(STARTER, "starter", "starter")


def in_demo(env: Mapping[str, str] = os.environ) -> bool:
    """Whether REFUSAL_DEMO asks for the mode that stores nothing and loads the starter only."""
    return env.get("REFUSAL_DEMO", "").strip().lower() not in ("", "0", "false", "no", "off")


def offered(folders: list[str], *, roots: bool, demo: bool) -> list[str]:
    """Values of the picker, in order."""
    if demo:
        return [STARTER]
    return [STARTER, *(FOLDER + name for name in folders), *([TYPED_PATH] if roots else []), HUB]


def option_name(option: str) -> str:
    """How the picker shows a value."""
    fixed = {STARTER: "starter", TYPED_PATH: "a folder, by path", HUB: "from the Hugging Face hub"}
    return fixed.get(option, option.removeprefix(FOLDER))


def folder_names(roots: DataRoots) -> list[str]:
    """Folders below the data roots that hold a config.json, as `DataRoots.resolve` takes them back."""
    places = [PurePosixPath(name) for name, _ in roots.files([".json"])]
    return [str(place.parent) for place in places if place.name == "config.json"]


def choose(option: str, path: str, hub_name: str, roots: DataRoots | None, *, demo: bool) -> Choice | None:
    """The choice that the picker's settings describe; None while the text that they need is empty.

    Raises InputError for a path outside the data roots or a name that is no hub name. In demo mode it is the starter
    whatever the settings say.
    """
    if demo or option == STARTER:
        return STARTER_CHOICE
    if option == HUB:
        return _hub_choice(hub_name.strip()) if hub_name.strip() else None
    typed = path.strip() if option == TYPED_PATH else option.removeprefix(FOLDER)
    if not typed:
        return None
    found = (roots or DataRoots(())).resolve(typed)
    if not found.is_dir():
        raise InputError("this is a file, not a checkpoint folder", where=typed, fix="name the folder that holds it")
    return Choice(str(found), typed, "directory")


def _hub_choice(name: str) -> Choice:
    parsed = hub.parse_name(name)
    if parsed is None:
        raise InputError("this is no hub name", where=name, fix="write it as owner/name or owner/name@revision")
    repo, revision = parsed
    full = f"{repo}@{revision or 'main'}"
    # The loader takes a folder of that name first; it could lie outside the data roots.
    if os.path.lexists(full):
        raise InputError("there is a folder of that name on this machine", where=name, fix="name a revision")
    return Choice(full, full, "hub")


def size_sentence(choice: Choice) -> str:
    """Its size on this machine in words."""
    size = choice.size()
    return show_bytes(size) if size else "not on this machine yet" if choice.kind == "hub" else "no files found"
