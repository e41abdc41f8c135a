"""The files of a study: uploaded, picked below a data root, or the sample; and what a look into them finds."""

from __future__ import annotations

import hashlib
from pathlib import Path

import streamlit as st

from refusal_core import limits
from refusal_core.activations.peek import Peek
from refusal_core.roots import DataRoots
from ui import cache, inputs, show, state
from ui.study import FILE, UPLOAD, Offered

LATEST = "study_latest"  # role -> whether its upload or its picked file came last
ROLES = {
    "train": "Training file, .npz",
    "test": "Test file, .npz",
    "pool": "Pooled file, .npz",
    "other": "Second file, .npz",
}


def draw(role: str, *, demo: bool) -> Offered | None:
    """An upload box and a list of the files below the data roots; the file that came last. Raises InputError."""
    st.file_uploader(
        ROLES[role],
        key=state.STUDY_UPLOAD[role],
        max_upload_size=inputs.most_megabytes(demo=demo, in_demo=limits.DEMO_STUDY_BYTES),
        on_change=_came,
        args=(role, UPLOAD),
    )
    if not demo:
        files = inputs.below(cache.activation_files, demo=demo)
        inputs.pick("… or below a data root", ".npz file", files, state.STUDY_FILE[role], _came, role, FILE)
    return offered(role, demo=demo)


def _came(role: str, kind: str) -> None:
    st.session_state[LATEST] = {**st.session_state.get(LATEST, {}), role: kind}


def offered(role: str, *, demo: bool) -> Offered | None:
    """The file of this role, None without one. Raises InputError for one that is too large or not below a root."""
    upload, picked = st.session_state.get(state.STUDY_UPLOAD[role]), st.session_state[state.STUDY_FILE[role]]
    latest = st.session_state.get(LATEST, {}).get(role)
    if upload is not None and (latest != FILE or picked is None):
        inputs.check_upload(upload, demo=demo, in_demo=limits.DEMO_STUDY_BYTES)
        return Offered(UPLOAD, upload.name, upload.name, upload, upload.size, (upload.file_id,))
    return None if picked is None or demo else below_root(picked)


def below_root(picked: str) -> Offered:
    """The file below a data root of this name. Raises InputError when it is not there."""
    path = DataRoots.from_environment().resolve(picked)
    status = path.stat()
    return of_path(path, FILE, picked, (str(path), str(status.st_mtime_ns), str(status.st_size)))


def of_path(path: Path, kind: str, shown: str, key: tuple[str, ...]) -> Offered:
    return Offered(kind, path.name, shown, path, path.stat().st_size, key)


def suffix(files: tuple[Offered, ...]) -> str:
    """What ends the keys of widgets that belong to these files, so that other files get fresh ones."""
    return hashlib.sha256("\0".join(part for file in files for part in file.key).encode()).hexdigest()[:12]


def looked_into(file: Offered) -> Peek:
    """Raises InputError for what is no sound NPZ."""
    return Peek(file.content, file.name)


def draw_line(file: Offered, peek: Peek, key: str | None) -> None:
    """Name, size, and what the activations are."""
    held = peek.members.get(key)
    kind = f", {list(held.shape)} {held.dtype}" if held else ""
    show.text(f"{file.shown}: {limits.show_bytes(file.size)}{kind}")
