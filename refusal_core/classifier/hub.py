"""Fetching a checkpoint from the Hugging Face hub, only when the user named one."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as DeadlineError
from dataclasses import dataclass
from pathlib import Path

from refusal_core import limits
from refusal_core.errors import InputError, RefusalCoreError, WorkError

_HUB_NAME = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w./-]+))?")
# Weights as safetensors only, and what the configuration and the tokenizer are read from.
_WANTED = ["*.safetensors", "*.safetensors.index.json", "config.json", "tokenizer*", "special_tokens_map.json",
           "added_tokens.json", "vocab.*", "merges.txt", "spiece.model", "sentencepiece*.model"]  # fmt: skip


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


def fetch(repo: str, revision: str | None) -> HubFolder:
    """Download (or take from the local cache) what is needed to load `repo`; nothing else of it is fetched.

    Raises InputError when the hub says no (unknown, private or gated repository, no safetensors, too large), and
    WorkError within about `limits.HUB_SECONDS` when it does not answer and the cache has no copy.
    """
    from huggingface_hub import snapshot_download

    try:
        commit = _within_deadline(repo, revision)
    except RefusalCoreError:
        raise
    except Exception as problem:  # the client raises a dozen kinds for "not reached"; the cause stays chained
        return _from_cache(repo, revision, problem)
    try:
        path = snapshot_download(repo, revision=commit, allow_patterns=_WANTED)
    except Exception as problem:
        raise WorkError(f"The download of {repo} from the hub broke off; run it again to go on.") from problem
    return HubFolder(Path(path), commit, from_cache=False)


def _within_deadline(repo: str, revision: str | None) -> str:
    """The commit that `revision` names. The client's own timeouts do not cover a name server that hangs."""
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hub")
    try:
        return pool.submit(_commit, repo, revision).result(timeout=limits.HUB_SECONDS)
    except DeadlineError as problem:
        raise ConnectionError(f"no answer within {limits.HUB_SECONDS} s") from problem
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _commit(repo: str, revision: str | None) -> str:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        info = HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=limits.HUB_SECONDS - 2)
    except GatedRepoError:
        raise InputError("the repository is gated", where=repo, fix="ask for access there, then log in with `hf auth login`") from None
    except RevisionNotFoundError:
        raise InputError(f"there is no revision {revision}", where=repo, fix="name a branch, tag or commit of it") from None
    except RepositoryNotFoundError:
        raise InputError(
            "the hub knows no such model, and there is no folder of that name here",
            where=repo,
            fix="check the spelling, or log in with `hf auth login` when it is private",
        ) from None
    weights = [file for file in info.siblings or [] if file.rfilename.endswith(".safetensors")]
    if not weights:
        raise InputError("the repository has no safetensors weights", where=repo, why="other weight formats can run code and are not opened")
    size = sum(file.size or 0 for file in weights)
    limits.check_size(size, limits.CHECKPOINT_BYTES, what="the checkpoint", where=repo, fix="name a smaller one")
    return info.sha


def _from_cache(repo: str, revision: str | None, problem: Exception) -> HubFolder:
    from huggingface_hub import snapshot_download

    try:
        path = Path(snapshot_download(repo, revision=revision, allow_patterns=_WANTED, local_files_only=True))
    except Exception:
        wanted = f"{repo}@{revision}" if revision else repo
        raise WorkError(
            f"The hub could not be reached for {wanted}, no copy of it is in the local cache, and there is no folder of "
            "that name here; connect to the network, or name a checkpoint folder or `starter`."
        ) from problem
    return HubFolder(path, path.name, from_cache=True)
