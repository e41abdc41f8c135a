"""Fetching a checkpoint from the Hugging Face hub, only when the user named one."""

from __future__ import annotations

import queue
import re
import threading
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from refusal_core import limits
from refusal_core.classifier.folder import ADAPTER, CONFIG, WANTED
from refusal_core.errors import InputError, RefusalCoreError, WorkError

_PART = r"[A-Za-z0-9][\w.-]*"
_HUB_NAME = re.compile(rf"(?P<repo>{_PART}/{_PART})(?:@(?P<revision>(?!.*\.\.)\w[\w./-]*))?", re.ASCII)
_LOG_IN = "log in with `hf auth login`"


@dataclass(frozen=True)
class HubFolder:
    """A downloaded snapshot. `revision` is the commit; `from_cache` when the hub itself was not reached."""

    path: Path
    revision: str
    from_cache: bool


def parse_name(name: str) -> tuple[str, str | None] | None:
    """(repository, revision or None) of "owner/name@revision"; None when `name` is not of that form."""
    match = _HUB_NAME.fullmatch(name)
    return (match["repo"], match["revision"]) if match else None


def fetch(repo: str, revision: str | None, *, also: tuple[str, ...] = ()) -> HubFolder:
    """Download (or take from the local cache) what is needed to load `repo`; nothing else of it is fetched.

    `also` are further file names to take where they are there.

    Raises InputError when the hub says no (unknown, private or gated repository, no safetensors, too large), and
    WorkError within `limits.HUB_SECONDS` when it does not answer and the cache has no copy.
    """
    from huggingface_hub import hf_hub_download

    try:
        commit, names = _ask_within_deadline(repo, revision, also)
    except RefusalCoreError:
        raise
    except Exception as problem:
        return _from_cache(repo, revision, problem)
    try:
        for name in names[:-1]:
            hf_hub_download(repo, name, revision=commit)
        # By the user's own revision, since that is the name under which the cache will be asked.
        path = Path(hf_hub_download(repo, names[-1], revision=revision))
    except Exception as problem:
        if refused := _refusal(repo, revision, problem):
            raise refused from problem
        cause = type(problem).__name__
        raise WorkError(f"The download of {repo} broke off ({cause}); run it again to go on from there.") from problem
    if path.parent.name != commit:
        raise WorkError(f"{repo} changed on the hub while it was downloaded; run it again.")
    return HubFolder(path.parent, commit, from_cache=False)


def _ask_within_deadline(repo: str, revision: str | None, also: tuple[str, ...]) -> tuple[str, list[str]]:
    """`_ask` in a thread that may be left behind: the client's timeouts do not cover a name server that hangs."""
    answer: queue.SimpleQueue[tuple[str, list[str]] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answer.put(_ask(repo, revision, also))
        except Exception as problem:
            answer.put(problem)

    threading.Thread(target=ask, name="hub", daemon=True).start()
    try:
        found = answer.get(timeout=_patience())
    except queue.Empty:
        found = TimeoutError(f"no answer within {_patience()} s")
    if isinstance(found, Exception):
        raise found
    return found


def _ask(repo: str, revision: str | None, also: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """The commit, and the files to download; InputError when they cannot be a checkpoint that can be loaded.

    config.json is the last of them, so that a cache that holds it holds them all.
    """
    from huggingface_hub import HfApi

    try:
        info = HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=_patience())
    except Exception as problem:
        if refused := _refusal(repo, revision, problem):
            raise refused from problem
        raise
    files = info.siblings or []
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise InputError(
            "it has no safetensors weights", where=repo, why="other formats can run code and are not opened"
        )
    wanted = [file for file in files if any(fnmatchcase(file.rfilename, pattern) for pattern in (*WANTED, *also))]
    size = sum(file.size or 0 for file in wanted)
    limits.check_size(size, limits.CHECKPOINT_BYTES, what="the checkpoint", where=repo, fix="name a smaller one")
    names = sorted((file.rfilename for file in wanted), key=lambda name: name == CONFIG)
    if ADAPTER in names:
        return info.sha, [ADAPTER]  # enough to say what it is
    if CONFIG not in names:
        raise InputError(f"it has no {CONFIG}", where=repo, why="a repository as push_to_hub fills it was expected")
    return info.sha, names


def _refusal(repo: str, revision: str | None, problem: Exception) -> InputError | None:
    """What the hub's clear no means for the user; None for every other problem."""
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(problem, GatedRepoError):
        return InputError("the repository is gated", where=repo, fix=f"ask for access on its page, then {_LOG_IN}")
    if isinstance(problem, RevisionNotFoundError):
        return InputError(f"there is no revision {revision}", where=repo, fix="name a branch, tag or commit of it")
    if isinstance(problem, RepositoryNotFoundError | HFValidationError):
        return InputError(
            "the hub knows no such model, and there is no folder of that name here",
            where=repo,
            fix=f"check the spelling, or {_LOG_IN} when it is private",
        )
    return None


def _from_cache(repo: str, revision: str | None, problem: Exception) -> HubFolder:
    from huggingface_hub import try_to_load_from_cache  # the downloading functions ask the network even for the cache

    found = try_to_load_from_cache(repo, CONFIG, revision=revision)
    if not isinstance(found, str):
        wanted = f"{repo}@{revision}" if revision else repo
        why, mend = _why(problem)
        raise WorkError(
            f"The hub did not hand out {wanted} ({why}), no copy of it is in the local cache, and there is no folder "
            f"of that name here; {mend}, or name a checkpoint folder or `starter`."
        ) from problem
    folder = Path(found).parent
    return HubFolder(folder, folder.name, from_cache=True)


def _why(problem: Exception) -> tuple[str, str]:
    """Why the hub gave nothing, and how to mend it."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(problem, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set", "unset it"
    if isinstance(problem, HfHubHTTPError):
        status = problem.response.status_code
        return f"HTTP status {status}", _LOG_IN if status in (401, 403) else "try again later"
    return "no answer in time" if "Timeout" in type(problem).__name__ else "no connection", "connect to the network"


def _patience() -> float:
    """Seconds to wait for the hub; the rest of HUB_SECONDS is for what comes before and after."""
    return limits.HUB_SECONDS * 0.8
