"""Everything that outlives a rerun and is shared by sessions. Keys are names and file stamps, never arrays."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from refusal_core.classifier.folder import read_folder
from refusal_core.errors import WorkError
from refusal_core.memory import give_back
from refusal_core.roots import DataRoots
from ui import checkpoints, runs
from ui.batches import Shelf as BatchShelf
from ui.checkpoints import Choice, Folders
from ui.scorecards import Shelf as ScorecardShelf
from ui.shelf import Shelf
from ui.studies import Shelf as StudyShelf

if TYPE_CHECKING:
    from refusal_core.classifier import CheckpointInfo, Classifier
    from refusal_core.climb import Demonstration, Settings
    from refusal_core.jobs import Job
    from refusal_core.scorecard.cache import AnswerCache
    from refusal_core.store import Store

LISTING_SECONDS = 30
DEMONSTRATIONS = 4  # kept; the largest that a page runs takes about 60 MB
DEMO_ANSWERS = 20_000  # of scorecards, about 300 bytes each
SUITE_FILES = (".yaml", ".yml")
EXCHANGE_FILES = (".jsonl", ".json", ".csv", ".parquet")
ACTIVATION_FILES = (".npz",)


@dataclass(frozen=True)
class Loaded:
    """A classifier in memory, and the seconds that loading it took."""

    classifier: Classifier
    seconds: float


def load_classifier(choice: Choice) -> Loaded:
    """The classifier of `choice`. One is held at a time, for all sessions; first loads in parallel build it once.

    Raises InputError or WorkError with one sentence; a failed load is tried again at the next call.
    """
    return _loaded(_load, choice)


def load_second(choice: Choice) -> Loaded:
    """The classifier of `choice` to compare with, beside the one of `load_classifier`. Raises as that does."""
    return _loaded(_load if loaded_info(choice) else _load_second, choice)


def _loaded(load: Callable[[str, tuple], Loaded], choice: Choice) -> Loaded:
    try:
        return load(choice.name, choice.stamp())
    except FileNotFoundError as problem:
        raise WorkError(f"The files of the checkpoint {choice.shown} are not there.") from problem
    except OSError as problem:
        raise WorkError(f"The checkpoint {choice.shown} could not be read: {problem.strerror or problem}.") from problem
    except MemoryError as problem:
        raise WorkError(f"There is not enough memory to load the checkpoint {choice.shown}.") from problem


def loaded_info(choice: Choice) -> CheckpointInfo | None:
    """What is known of `choice` when it is the one in memory, otherwise None; loads nothing."""
    key, loaded = _shelf().get("latest", (None, None))
    return loaded.classifier.info if key == (choice.name, choice.stamp()) else None


def checkpoint_folders(roots: DataRoots) -> Folders:
    """Checkpoint folders below the data roots; looked up again after LISTING_SECONDS."""
    return _folders(tuple(map(str, roots.roots)))


def activation_files(roots: DataRoots) -> list[str]:
    """Files below the data roots that may hold activations; looked up again after LISTING_SECONDS."""
    return _files(tuple(map(str, roots.roots)), ACTIVATION_FILES)


def exchange_files(roots: DataRoots) -> list[str]:
    """Files below the data roots that may hold exchanges; looked up again after LISTING_SECONDS."""
    return _files(tuple(map(str, roots.roots)), EXCHANGE_FILES)


@st.cache_resource(max_entries=1, show_spinner=False)
def batches() -> BatchShelf:
    """The batches of all sessions."""
    return BatchShelf()


@st.cache_resource(max_entries=1, show_spinner=False)
def studies() -> StudyShelf:
    """The direction studies of all sessions."""
    return StudyShelf()


@st.cache_resource(max_entries=1, show_spinner=False)
def scorecards() -> ScorecardShelf:
    """The suites of all sessions."""
    return ScorecardShelf()


@st.cache_resource(max_entries=1, show_spinner=False, on_release=lambda answers: answers.close())
def demo_answers() -> AnswerCache:
    """Answers by digest, in memory: the demo writes nothing to disk."""
    from refusal_core.scorecard.cache import AnswerCache

    return AnswerCache(None, most=DEMO_ANSWERS)


def classifier_for_work(name: str) -> Classifier:
    """The classifier in memory when it is the one of `name`, else a fresh one that its user alone holds.

    For work in threads: what others have on their pages is not pushed out of memory.
    """
    from refusal_core.classifier import load

    key, loaded = _shelf().get("latest", (None, None))
    choice = Choice(name, name, "starter" if name == checkpoints.STARTER else "directory")
    return loaded.classifier if loaded is not None and key == (name, choice.stamp()) else load(name)


def suite_files(roots: DataRoots) -> list[str]:
    """Files below the data roots that may be suites; looked up again after LISTING_SECONDS."""
    return _files(tuple(map(str, roots.roots)), SUITE_FILES)


@st.cache_resource(max_entries=1, show_spinner=False)
def readings() -> Shelf[runs.Reading]:
    """The training runs that were read, of all sessions."""
    return Shelf(runs.READINGS_KEPT)


def run_folders(roots: DataRoots) -> list[str]:
    """Folders below the data roots that may hold training runs; looked up again after LISTING_SECONDS."""
    return _run_folders(tuple(map(str, roots.roots)))


@st.cache_resource(max_entries=2, show_spinner=False, on_release=lambda store: store.close())
def store(url: str, _open: Callable[[str], Store]) -> Store:
    """The store at `url`, opened once by `_open`. Raises as that does; a failure is tried again."""
    return _open(url)


def folder_digest(choice: Choice) -> str:
    """The digest of a local checkpoint, as CheckpointInfo gives it, without loading it. Raises as reading it does."""
    return _digest(str(choice.folder), choice.shown, choice.stamp())


def demonstration(settings: Settings, job: Job | None = None) -> Demonstration:
    """The search demonstration of `settings`; the last DEMONSTRATIONS are kept for all sessions. Raises Cancelled."""
    from refusal_core.climb import demonstrate

    kept = _demonstrations()
    found = kept.pop(settings, None) or demonstrate(settings, job)
    kept[settings] = found  # the last one asked for goes last
    for old in list(kept)[:-DEMONSTRATIONS]:
        kept.pop(old, None)
    return found


def _forget(loaded: Loaded) -> None:
    if _shelf().get("latest", (None, None))[1] is loaded:
        _shelf().pop("latest", None)


@st.cache_resource(max_entries=1, show_spinner="Loading the checkpoint", show_time=True, on_release=_forget)
def _load(name: str, stamp: tuple) -> Loaded:
    begun = time.perf_counter()
    from refusal_core.classifier import load

    loaded = Loaded(load(name), time.perf_counter() - begun)
    give_back()
    _shelf()["latest"] = ((name, stamp), loaded)
    return loaded


@st.cache_resource(max_entries=1, show_spinner="Loading the second checkpoint", show_time=True)
def _load_second(name: str, stamp: tuple) -> Loaded:
    begun = time.perf_counter()
    from refusal_core.classifier import load

    return Loaded(load(name), time.perf_counter() - begun)


@st.cache_resource(max_entries=1, show_spinner=False)
def _shelf() -> dict[str, tuple[tuple, Loaded]]:
    """The latest load under one key, for pages that tell which checkpoint is in memory."""
    return {}


@st.cache_resource(max_entries=1, show_spinner=False)
def _demonstrations() -> dict[Settings, Demonstration]:
    """Results under one key, since a cached function of its own could not show progress."""
    return {}


@st.cache_data(max_entries=4, ttl=LISTING_SECONDS, show_spinner=False)
def _folders(roots: tuple[str, ...]) -> Folders:
    return checkpoints.folders(DataRoots(tuple(map(Path, roots))))


@st.cache_data(max_entries=4, ttl=LISTING_SECONDS, show_spinner=False)
def _files(roots: tuple[str, ...], endings: tuple[str, ...]) -> list[str]:
    return [name for name, _ in DataRoots(tuple(map(Path, roots))).files(endings)]


@st.cache_data(max_entries=4, ttl=LISTING_SECONDS, show_spinner=False)
def _run_folders(roots: tuple[str, ...]) -> list[str]:
    return runs.folders(DataRoots(tuple(map(Path, roots))))


@st.cache_data(max_entries=16, show_spinner=False)
def _digest(folder: str, shown: str, stamp: tuple) -> str:
    return read_folder(Path(folder), shown).digest()
