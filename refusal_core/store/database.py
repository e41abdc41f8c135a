"""Where the store lies, and how SQLite and PostgreSQL are opened so that several writers get along."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

SETTING = "REFUSAL_STORE"


def default_url(env: Mapping[str, str] = os.environ) -> str:
    """REFUSAL_STORE, or without it the URL of `refusal/store.sqlite` in the user's data folder.

    That is `$XDG_DATA_HOME` or `~/.local/share`, `~/Library/Application Support` on macOS, `%LOCALAPPDATA%` on Windows:
    what people wrote is no cache, which may be emptied at any time.
    """
    return given if (given := env.get(SETTING, "").strip()) else f"sqlite:///{_data_folder(env) / 'store.sqlite'}"


def _data_folder(env: Mapping[str, str]) -> Path:
    if sys.platform == "win32":
        base = Path(env.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        given = env.get("XDG_DATA_HOME", "")
        base = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "share"
    return base / "refusal"


class Database:  # filled in next
    where: str

    def close(self) -> None: ...


def open_database(url: str | None) -> Database:
    raise NotImplementedError
