"""The folder of a training: new, unfinished and resumable, or finished; never in between."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from refusal_core.errors import InputError

UNFINISHED = "unfinished.json"
SETTINGS = "setting"  # of what decides a training, the numbers that the user gives


def refuse_occupied(folder: Path, *, resume: bool) -> None:
    """Raise InputError when no training can begin in `folder`, nor go on there."""
    where, unfinished = str(folder), (folder / UNFINISHED).is_file()
    if folder.is_file():
        raise InputError("this is a file", where=where, fix="name a new folder")
    if unfinished and not resume:
        fix = "add --resume to go on with it, or delete the folder"
        raise InputError("an unfinished training lies there", where=where, fix=fix)
    if not unfinished and folder.exists() and any(folder.iterdir()):
        finished = resume and (folder / "config.json").is_file()
        what = "the training there is finished" if finished else "the folder is not empty"
        raise InputError(what, where=where, fix="delete it, or name a new one")


class Workplace:
    """`folder` while a training fills it. `unfinished.json` holds what decides the training until its last file is
    in place, so that another training never goes on there."""

    def __init__(self, folder: Path, decisive: dict) -> None:
        self.folder = folder
        self._note = folder / UNFINISHED
        self._decisive = json.loads(json.dumps(decisive))
        self._created = False

    def open(self, *, resume: bool) -> None:
        """Make the folder, or check that the unfinished training there is this one. Raises InputError otherwise."""
        refuse_occupied(self.folder, resume=resume)
        if self._note.is_file():
            if other := self._other_settings():
                raise InputError(
                    f"the unfinished training there was begun with another {other}",
                    where=str(self.folder),
                    fix="repeat its command with --resume, or delete the folder",
                )
            return
        self._created = not self.folder.exists()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._note.write_text(json.dumps(self._decisive, indent=2) + "\n", encoding="utf-8")

    def _other_settings(self) -> str | None:
        """The first thing in which the unfinished training differs; of settings, with what it began with."""
        try:
            old = json.loads(self._note.read_text(encoding="utf-8"))
        except ValueError:
            return "version of this program"
        key = _first_difference(old, self._decisive)
        if key == SETTINGS and isinstance(old.get(key), dict):
            name = _first_difference(old[key], self._decisive[key])
            return f"setting ({name.replace('_', ' ')} {old[key].get(name)})"
        return key and key.replace("_", " ")

    def clear(self) -> None:
        """Take back all that was written: nothing there is worth resuming."""
        for path in self.folder.iterdir():
            if path.name == UNFINISHED or path.name.startswith(("checkpoint-", ".finished")):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if self._created and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def finish(self, made: Path) -> None:
        """Move the files of `made`, a folder within this one, to their places; then the training is finished."""
        for path in sorted(made.iterdir(), key=lambda path: path.name == "config.json"):
            os.replace(path, self.folder / path.name)
        made.rmdir()
        self._note.unlink()


def _first_difference(one: dict, other: dict) -> str | None:
    return next((key for key in (*other, *one) if one.get(key) != other.get(key)), None)
