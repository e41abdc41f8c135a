"""MLflow without MLflow: its folder of small files and its SQLite store.

The store writes NaN as 0.0 with is_nan = 1, and infinities as the largest double.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from refusal_core.errors import InputError
from refusal_core.limits import RUN_ROWS, RUN_TEXT_BYTES
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.columns import superseded
from refusal_core.runs.files import Blob
from refusal_core.runs.model import Curve, Problem
from refusal_core.runs.names import names_of
from refusal_core.runs.sqlite_file import open_sqlite
from refusal_core.runs.text import decode, number
from refusal_core.runs.trackio import settings_of

FORMAT = "MLflow run"
_LARGEST = 1.797e308


def is_store(found: Mapping[str, list[str]]) -> bool:
    """Whether the tables of a database are MLflow's."""
    return "run_uuid" in found.get("runs", ()) and {"key", "value", "run_uuid"} <= set(found.get("metrics", ()))


def read_store(blob: Blob) -> tuple[list[Artefact], list[Problem]]:
    """Every run of an SQLite store that is not deleted."""
    with open_sqlite(blob) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(metrics)")}
        wanted = ("is_nan" if "is_nan" in columns else "0", "step" if "step" in columns else "NULL")
        have = {row[1] for row in connection.execute("PRAGMA table_info(runs)")}
        alive = " WHERE lifecycle_stage IS NOT 'deleted'" if "lifecycle_stage" in have else ""
        runs = dict(connection.execute(f"SELECT run_uuid, {'name' if 'name' in have else 'run_uuid'} FROM runs{alive}"))
        points: dict[str, dict[str, list[tuple]]] = {run: {} for run in runs}
        query = (
            f"SELECT run_uuid, key, value, timestamp, {wanted[0]}, {wanted[1]} FROM metrics ORDER BY timestamp, rowid"
        )
        for count, (run, key, value, time, is_nan, step) in enumerate(connection.execute(query)):
            if count >= RUN_ROWS:
                raise InputError(f"it holds more than {RUN_ROWS:,} values", where=blob.name)
            if run in points:
                points[run].setdefault(str(key), []).append((time, _value(value, is_nan), step))
        settings: dict[str, dict] = {run: {} for run in runs}
        try:
            for run, key, value in connection.execute("SELECT run_uuid, key, value FROM params"):
                settings.get(run, {})[str(key)] = _param(value)
        except connection.OperationalError:
            pass
    found = [_artefact(blob.name, run, name, points[run], settings[run]) for run, name in runs.items()]
    return [artefact for artefact in found if artefact.curves], []


def folders(blobs: Iterable[Blob]) -> dict[str, list[Blob]]:
    """Folder of each run to its files: where a meta.yaml with a run id lies beside a folder `metrics`."""
    blobs = list(blobs)
    roots = {}
    for blob in blobs:
        folder, _, name = blob.name.rpartition("/")
        if name == "meta.yaml" and re.search(rb"^run_(?:id|uuid):", blob.head(), re.M):
            roots[folder] = []
    for blob in blobs if roots else ():
        parts = blob.name.split("/")
        for at in range(len(parts) - 1, -1, -1):
            folder = "/".join(parts[:at])
            if folder in roots and parts[at] in ("meta.yaml", "metrics", "params", "tags"):
                roots[folder].append(blob)
                break
    return roots


def read_folder(folder: str, blobs: Iterable[Blob]) -> tuple[list[Artefact], list[Problem]]:
    """One run of the folder form. A metric's file holds lines of time in milliseconds, value and step."""
    prefix = len(folder) + 1 if folder else 0
    points: dict[str, list[tuple]] = {}
    settings: dict[str, object] = {}
    name, problems, file = folder.rpartition("/")[2], [], f"{folder}/meta.yaml" if folder else "meta.yaml"
    for blob in blobs:
        kind, _, key = blob.name[prefix:].partition("/")
        try:
            text = decode(blob.read(RUN_TEXT_BYTES if kind != "metrics" else 10 * RUN_TEXT_BYTES), blob.name).text
        except InputError as error:
            problems.append(Problem(blob.name, error.what, error.fix))
            continue
        if kind == "metrics":
            rows = [_line(line) for line in text.split("\n") if line.strip()]
            if None in rows:
                problems.append(Problem(blob.name, f"{rows.count(None):,} lines are no metric", "", "in part"))
            points[key] = [row for row in rows if row]
        elif kind == "params":
            settings[key] = _param(text.strip())
        elif found := re.search(r"^run_name:\s*'?(.*?)'?\s*$", text, re.M) if kind == "meta.yaml" else None:
            name = found[1] or name
    return [_artefact(file, folder.rpartition("/")[2], name, points, settings)], problems


def _line(line: str) -> tuple | None:
    cells = line.split()
    value = number(cells[1]) if len(cells) in (2, 3, 5) else None
    if value is None or (time := number(cells[0])) is None:
        return None
    return time, _value(value, False), number(cells[2]) if len(cells) > 2 else None


def _value(value: object, is_nan: object) -> float:
    found = number(value)
    if is_nan or found is None or found != found:
        return float("nan")
    return found if abs(found) < _LARGEST else float("inf") * (1 if found > 0 else -1)


def _param(value: object) -> object:
    found = number(value)
    return value if found is None or found != found or abs(found) == float("inf") else found


def _artefact(file: str, run: str, name: str, points: Mapping[str, list[tuple]], settings: dict) -> Artefact:
    curves = []
    named = names_of(tuple(points))
    for key, rows in points.items():
        times, values, steps = ([row[i] for row in rows] for i in range(3))
        unknown = float("nan")
        steps = [unknown if step is None else float(step) for step in steps]
        split = named[key].split or ("train" if named[key].metric in ("loss", "learning_rate", "grad_norm") else "")
        curves.append(
            Curve.of(
                named[key].metric,
                values,
                steps,
                split=split,
                dataset=named[key].dataset,
                label=named[key].label,
                key=key,
                file=file,
                times=[unknown if time is None else float(time) / 1000 for time in times],
                superseded=superseded(np.array(steps, dtype=np.float64)),
            )
        )
    settings = settings_of({str(key): value for key, value in settings.items()})
    count = sum(map(len, points.values()))
    return Artefact("history", FORMAT, file, part=run, name=name, settings=settings, curves=tuple(curves), rows=count)
