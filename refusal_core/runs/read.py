"""Files become artefacts: strictly one by one, or leniently all of a folder, where a bad file hides no good one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from refusal_core.errors import InputError, RefusalCoreError, WorkError
from refusal_core.jobs import Job
from refusal_core.limits import RUN_FILE_BYTES, RUN_FOLDER_BYTES, show_bytes
from refusal_core.runs import mlflow, trackio
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.files import Blob, blobs_of, files_below
from refusal_core.runs.model import Problem
from refusal_core.runs.sniff import Found, NotOurs, of_object, read_text
from refusal_core.runs.sqlite_file import MAGIC, open_sqlite, tables
from refusal_core.runs.tensorboard import is_events, read_events
from refusal_core.runs.text import decode
from refusal_core.zips import open_zip

_FOREIGN = (
    (b"\x1f\x8b", "gzip-compressed"),
    (b"BZh", "bzip2-compressed"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"%PDF-", "a PDF document"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x80", "a pickle, which is never opened"),
    (b"GGUF", "weights"),
)

_MEANT = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".db", ".sqlite", ".parquet", ".eval")  # of an empty file only


def read(path: str | Path) -> list[Artefact]:
    """What one file says, strictly. Raises InputError for a file that is none of the formats, or is not whole."""
    name = os.path.basename(path)
    try:
        [blob] = blobs_of([(name, Path(path))])
    except OSError:
        raise InputError("there is no such file", where=name) from None
    try:
        artefacts, problems = read_blob(blob)
    except NotOurs as other:
        raise InputError(f"it is no run artefact: {other.what}", where=name) from None
    for problem in problems:
        if problem.read != "whole":
            raise InputError(problem.what, where=problem.file, fix=problem.fix)
    return artefacts


def read_folder(folder: str | Path, job: Job | None = None) -> tuple[list[Artefact], list[Problem]]:
    """What all files below a folder say; every file that was not read, or not as it is, has a Problem.

    Raises InputError when the folder cannot be opened or holds too many files.
    """
    blobs, problems = files_below(folder, job)
    artefacts, more = _read_all(blobs, job)
    return artefacts, problems + more


def read_files(
    files: Iterable[tuple[str, bytes | Path]], job: Job | None = None
) -> tuple[list[Artefact], list[Problem]]:
    """The same of uploads: (name, bytes or path). The members of a zip archive count as files below its name."""
    blobs: list[Blob] = []
    problems: list[Problem] = []
    for blob in blobs_of(files):
        if blob.head().startswith(b"PK\x03\x04") and not _is_inspect(blob):
            try:
                blobs += _unpacked(blob, problems)
            except InputError as error:
                problems.append(Problem(blob.name, error.what, error.fix))
        else:
            blobs.append(blob)
    artefacts, more = _read_all(blobs, job)
    return artefacts, problems + more


def read_blob(blob: Blob, job: Job | None = None) -> Found:
    """The artefacts of one file. Raises InputError when it is broken, NotOurs when it is no run artefact."""
    head = blob.head()
    if not blob.size:
        if not blob.name.lower().endswith(_MEANT):
            raise NotOurs("an empty file")
        raise InputError("it is empty", where=blob.name, fix="copy it again")
    if head.startswith(b"version https://git-lfs"):
        what = "it is a Git LFS pointer: the content was not downloaded"
        raise InputError(what, where=blob.name, fix="run git lfs pull in that repository")
    if head.startswith(MAGIC):
        return _stamped(_sqlite(blob, job), blob)
    if head.startswith(b"PAR1"):
        found = trackio.read_parquet(blob)
        if found is None:
            raise NotOurs("a Parquet file without runs")
        return _stamped(found, blob)
    if head.startswith(b"PK\x03\x04"):
        return _stamped(_inspect(blob), blob)
    if is_events(head):
        return _stamped(read_events(blob, blob.read(RUN_FILE_BYTES), job), blob)
    _refuse_binary(head)
    decoded = decode(blob.read(RUN_FILE_BYTES), blob.name)
    artefacts, problems = read_text(decoded.text, blob.name, job)
    if decoded.repairs:
        problems = [*problems, Problem(blob.name, "; ".join(decoded.repairs), "save it as UTF-8", "whole")]
        artefacts = [replace(a, notes=(*decoded.repairs, *a.notes)) for a in artefacts]
    return _stamped((artefacts, problems), blob)


def _read_all(blobs: list[Blob], job: Job | None) -> tuple[list[Artefact], list[Problem]]:
    artefacts: list[Artefact] = []
    problems: list[Problem] = []
    if job:
        job.start(len(blobs), "files")
    taken: set[str] = set()
    for folder, files in mlflow.folders(blobs).items():
        found = mlflow.read_folder(folder, files)
        artefacts += found[0]
        problems += found[1]
        taken |= {blob.name for blob in files}
    budget = RUN_FOLDER_BYTES
    for blob in blobs:
        if blob.name not in taken:
            budget = _read_one(blob, budget, artefacts, problems, job)
        if job:
            job.advance()
    return artefacts, problems


def _read_one(blob: Blob, budget: int, artefacts: list, problems: list, job: Job | None) -> int:
    """Read one file into the two lists; what is left of the budget of bytes."""
    if blob.size > budget and not _is_foreign(blob):
        limit = show_bytes(RUN_FOLDER_BYTES)
        problems.append(
            Problem(blob.name, f"more than {limit} of one folder is not read", "name a folder further down")
        )
        return budget
    try:
        found = read_blob(blob, job)
        artefacts += found[0]
        problems += found[1]
        return budget - blob.size
    except NotOurs as other:  # whose first bytes were read
        problems.append(Problem(blob.name, other.what, ours=False))
    except InputError as error:
        why = f"; {error.why}" if error.why else ""
        problems.append(Problem(blob.name, error.what + why, error.fix))
    except WorkError as error:
        problems.append(Problem(blob.name, str(error)))
    except RecursionError:
        problems.append(Problem(blob.name, "it is nested too deep"))
    return budget


def _is_foreign(blob: Blob) -> bool:
    try:
        _refuse_binary(blob.head())
    except NotOurs:
        return True
    except RefusalCoreError:
        return False
    return False


def _refuse_binary(head: bytes) -> None:
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise NotOurs(what)
    if head[8:10] == b'{"' and len(head) > 64:  # a length of eight bytes, then the header
        raise NotOurs("weights")
    controls = sum(byte < 9 or 13 < byte < 27 for byte in head[:512])
    is_utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:512] and _every_second_is_null(head)
    if controls > 0.1 * min(len(head), 512) and not is_utf16 and head.strip(b"\0"):
        raise NotOurs("a binary file")


def _every_second_is_null(head: bytes) -> bool:
    half = len(head[:512]) // 2
    return max(head[0:512:2].count(0), head[1:512:2].count(0)) > 0.7 * half


def _sqlite(blob: Blob, job: Job | None) -> Found:
    with open_sqlite(blob) as connection:
        found = tables(connection)
    if trackio.is_store(found):
        return trackio.read_store(blob, job)
    if mlflow.is_store(found):
        return mlflow.read_store(blob)
    raise NotOurs("an SQLite database that is neither Trackio's nor MLflow's")


def _is_inspect(blob: Blob) -> bool:
    try:
        with open_zip(blob.data if blob.data is not None else blob.path, blob.name) as archive:
            names = {member.name for member in archive.members}
            return any(name.startswith(("_journal/", "samples/")) for name in names)
    except RefusalCoreError:
        return False


def _inspect(blob: Blob) -> Found:
    """The header of an Inspect log; other archives are left closed."""
    if not _is_inspect(blob):
        raise NotOurs("an archive, which is not opened in a folder")
    with open_zip(blob.data if blob.data is not None else blob.path, blob.name) as archive:
        header = next((member for member in archive.members if member.name == "header.json"), None)
        if header is None:
            what = "it is an Inspect log without its end: the evaluation was stopped, or still runs"
            raise InputError(what, where=blob.name, fix="let it finish, or run it again")
        text = decode(archive.read(header, RUN_FILE_BYTES), blob.name).text
    from refusal_core.exchange_formats.json_values import JsonError, parse

    try:
        value = parse(text)
    except JsonError as error:
        raise InputError(f"its header.json is {error}", where=blob.name) from None
    if not isinstance(value, dict):
        raise InputError("its header.json is no object", where=blob.name)
    return of_object(value, blob.name)


def _unpacked(blob: Blob, problems: list[Problem]) -> list[Blob]:
    """The members of an archive as files; a common first folder stays in their names."""
    found = []
    with open_zip(blob.data if blob.data is not None else blob.path, blob.name) as archive:
        for member in archive.members:
            if any(part.startswith(".") for part in member.name.split("/")):
                continue
            try:
                data = archive.read(member, RUN_FILE_BYTES)
                found.append(Blob(member.name, len(data), data=data))
            except InputError as error:
                problems.append(Problem(member.name, error.what, error.fix))
    return found


def _stamped(found: Found, blob: Blob) -> Found:
    """The artefacts with the SHA-256 of their file."""
    artefacts, problems = found
    digest = blob.digest() if artefacts else ""
    return [replace(artefact, digest=digest) for artefact in artefacts], problems
