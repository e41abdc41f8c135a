"""Trackio: its SQLite store, the inbox of its JSON-lines mode, its Parquet export, and what its command line prints.

In a store that the Hugging Face Trainer wrote, the column `step` counts rows; the optimizer step is train/global_step.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from refusal_core.errors import InputError
from refusal_core.exchange_formats.json_values import JsonError, parse
from refusal_core.jobs import Job
from refusal_core.limits import RUN_ROWS
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.columns import Columns
from refusal_core.runs.files import Blob
from refusal_core.runs.flat import status_of
from refusal_core.runs.log_rows import history
from refusal_core.runs.model import Problem
from refusal_core.runs.report_text import items, score
from refusal_core.runs.sqlite_file import open_sqlite, tables
from refusal_core.runs.tables import ReportRow, ReportTable, Result, ResultsTable, Table
from refusal_core.runs.text import number

FORMAT = "Trackio store"
_STEP = "train/global_step"
_MOST_RUNS = 10_000


@dataclass
class _Run:
    """One run on its way: two runs of one name have ids of their own."""

    name: str
    columns: Columns
    settings: dict[str, object] = field(default_factory=dict)
    tables: list[tuple[str, object]] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    last_step: float | None = None
    """The last train/global_step, in a store that the Trainer wrote."""


class _Runs:
    """Rows from whatever form of the store, sorted by run."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.runs: dict[str, _Run] = {}
        self.rows = 0
        self.broken = 0

    def of(self, key: str, name: str) -> _Run:
        if key not in self.runs and len(self.runs) >= _MOST_RUNS:
            raise InputError(f"it holds more than {_MOST_RUNS:,} runs", where=self.file)
        return self.runs.setdefault(key, _Run(name, Columns(self.file)))

    def add(self, key: object, name: object, step: object, time: object, metrics: object) -> None:
        """One row; `metrics` is an object or JSON text, of a BLOB too."""
        self.rows += 1
        if self.rows > RUN_ROWS:
            raise InputError(f"it holds more than {RUN_ROWS:,} rows", where=self.file)
        values = _object(metrics)
        if values is None:
            self.broken += 1
            return
        run = self.of(str(key or name or ""), str(name or key or ""))
        row: dict[str, object] = {}
        for name_, value in values.items():
            if isinstance(value, Mapping) and value.get("_type") == "trackio.table":
                run.tables.append((name_, value.get("_value")))
            else:
                row[name_] = value
        if not row:
            return
        if (true_step := number(row.get(_STEP))) is not None:
            run.last_step = true_step
        elif run.last_step is not None:  # `step` counts rows in this store
            row["step"] = run.last_step
        elif step is not None:
            row["step"] = step
        row["timestamp"] = time
        run.columns.add({k: v for k, v in row.items() if v is not None})

    def finish(self) -> tuple[list[Artefact], list[Problem]]:
        artefacts: list[Artefact] = []
        for key, run in self.runs.items():
            found = history(
                run.columns, self.file, FORMAT, part=key, name=run.name, settings=run.settings, alerts=tuple(run.alerts)
            )
            artefacts.append(found)
            for name, rows in run.tables:
                if (table := _table(rows, self.file, f"{run.name}: {name}")) is not None:
                    artefacts.append(
                        Artefact("table", "Trackio table", self.file, part=key, name=run.name, table=table)
                    )
        if self.broken:
            what = f"{self.broken:,} rows whose metrics are not JSON were left out"
            return artefacts, [Problem(self.file, what, "copy the store again", "in part")]
        return artefacts, []


def is_store(found: Mapping[str, list[str]]) -> bool:
    """Whether the tables of a database are Trackio's, of any version."""
    return {"metrics", "run_name"} <= set(found.get("metrics", ()))


def read_store(blob: Blob, job: Job | None = None) -> tuple[list[Artefact], list[Problem]]:
    """Every run of an SQLite store, its alerts and settings."""
    with open_sqlite(blob) as connection:
        columns = tables(connection)
        runs = _Runs(blob.name)
        by_id = "run_id" in columns["metrics"]
        key = "coalesce(run_id, run_name)" if by_id else "run_name"
        time = "timestamp" if "timestamp" in columns["metrics"] else "NULL"
        query = f"SELECT {key}, run_name, step, {time}, metrics FROM metrics ORDER BY rowid"
        for count, row in enumerate(connection.execute(query)):
            runs.add(*row)
            if job and count % 10_000 == 0:
                job.check()
        _extras(connection, columns, runs)
        return runs.finish()


def _extras(connection: sqlite3.Connection, columns: Mapping[str, list[str]], runs: _Runs) -> None:
    """Settings and alerts; a store without them is whole all the same."""
    for table in ("configs", "alerts"):
        have = columns.get(table, ())
        if "run_name" not in have:
            continue
        key = "coalesce(run_id, run_name)" if "run_id" in have else "run_name"
        if table == "configs" and "config" in have:
            for run, name, config in connection.execute(f"SELECT {key}, run_name, config FROM configs"):
                runs.of(str(run), str(name)).settings.update(settings_of(_object(config) or {}))
        elif table == "alerts" and {"title", "level"} <= set(have):
            query = f"SELECT {key}, run_name, level, title, text, step FROM alerts ORDER BY rowid LIMIT 1000"
            for run, name, level, title, text, step in connection.execute(query):
                at = "" if step is None else f" at step {step}"
                runs.of(str(run), str(name)).alerts.append(f"{level}{at}: {title}" + (f" ({text})" if text else ""))


def settings_of(config: Mapping[str, object]) -> dict[str, object]:
    """Plain values without Trackio's own and without paths of the machine that trained."""
    return {
        key: value
        for key, value in config.items()
        if not key.startswith("_")
        and (value is None or isinstance(value, bool | int | float | str))
        and not (isinstance(value, str) and (value.startswith(("/", "\\", "~")) or value[1:3] == ":\\"))
    }


def is_inbox_line(row: object) -> bool:
    """Whether a JSON line is one of the JSON-lines mode."""
    return isinstance(row, Mapping) and {"v", "kind", "run"} <= row.keys() and "project" in row


def read_inbox(rows: Iterable[tuple[int, object]], file: str) -> tuple[list[Artefact], list[Problem]]:
    """Every run of one file of the inbox."""
    runs, broken = _Runs(file), 0
    for _, row in rows:
        if isinstance(row, JsonError) or not isinstance(row, Mapping):
            broken += 1
            continue
        key, name = row.get("run_id") or row.get("run"), row.get("run")
        if row.get("kind") == "metric":
            runs.add(key, name, row.get("step"), row.get("timestamp"), row.get("metrics"))
        if isinstance(row.get("config"), Mapping):
            runs.of(str(key), str(name)).settings.update(settings_of(row["config"]))
        if row.get("kind") == "alert":
            runs.of(str(key), str(name)).alerts.append(f"{row.get('level')}: {row.get('title')}")
    artefacts, problems = runs.finish()
    if broken:
        problems.append(
            Problem(file, f"{broken:,} lines that are no objects were left out", "copy it again", "in part")
        )
    return artefacts, problems


def read_parquet(blob: Blob) -> tuple[list[Artefact], list[Problem]] | None:
    """Every run of an export, one column a metric; None for a Parquet file of something else."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(blob.data) if blob.data is not None else blob.path)
        names = file.schema_arrow.names
        if not {"run_name", "step"} <= set(names):
            return None
        if file.metadata.num_rows > RUN_ROWS:
            raise InputError(f"it holds more than {RUN_ROWS:,} rows", where=blob.name)
        runs = _Runs(blob.name)
        own = {"id", "run_id", "run_name", "step", "timestamp", "log_id", "space_id"}
        for batch in file.iter_batches(batch_size=10_000):
            for row in batch.to_pylist():
                metrics = {key: value for key, value in row.items() if key not in own and value is not None}
                runs.add(row.get("run_id"), row["run_name"], row["step"], row.get("timestamp"), metrics)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("it is no whole Parquet file", where=blob.name, fix="export it again") from None
    return runs.finish()


def read_printed(value: Mapping, file: str) -> tuple[list[Artefact], list[Problem]] | None:
    """What `trackio … --json` printed: one metric of a run, or the rows of a query; None for something else.

    Lists of names and alerts hold nothing to draw: an empty list of artefacts.
    """
    if "project" not in value:
        return None
    runs = _Runs(file)
    if isinstance(value.get("values"), list) and isinstance(value.get("metric"), str):
        for row in value["values"]:
            if isinstance(row, Mapping):
                metrics = {value["metric"]: row.get("value")}
                runs.add(None, value.get("run"), row.get("step"), row.get("timestamp"), metrics)
        return runs.finish()
    if isinstance(value.get("rows"), list) and isinstance(value.get("columns"), list):
        if not {"run_name", "metrics"} <= set(map(str, value["columns"])):
            return [], []
        for row in value["rows"]:
            if isinstance(row, Mapping):
                runs.add(
                    row.get("run_id"), row.get("run_name"), row.get("step"), row.get("timestamp"), row.get("metrics")
                )
        return runs.finish()
    return ([], []) if value.keys() & {"runs", "alerts", "metrics", "config", "num_logs", "query"} else None


def _object(metrics: object) -> Mapping | None:
    if isinstance(metrics, bytes):
        metrics = metrics.decode("utf-8", "replace")
    if isinstance(metrics, str):
        try:
            metrics = json.loads(metrics)
        except (ValueError, RecursionError):
            try:
                metrics = parse(metrics)
            except JsonError:
                return None
    return metrics if isinstance(metrics, Mapping) else None


def _table(rows: object, file: str, name: str) -> Table | None:
    """A logged table: by class when it has labels and scores, else its numbers."""
    rows = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    if not rows:
        return None
    keys = {key.lower(): key for key in rows[0]}
    label = next((keys[key] for key in ("label", "class", "category") if key in keys), None)
    f1 = next((keys[key] for key in ("f1", "f1-score", "f1_score") if key in keys), None)
    if label and (f1 or "precision" in keys or "recall" in keys):
        return _report(rows, keys, label, f1, file, name)
    return ResultsTable(file, name, "Trackio table", tuple(_results(rows, label)), "ok")


def _report(rows: list[Mapping], keys: dict[str, str], label: str, f1: str | None, file: str, name: str) -> ReportTable:
    def cell(row: Mapping, key: str | None) -> object:
        return row.get(key) if key else None

    classes = tuple(
        ReportRow(
            str(r.get(label)),
            *(score(cell(r, k)) for k in (keys.get("precision"), keys.get("recall"), f1)),
            items(cell(r, keys.get("support"))),
        )
        for r in rows
    )
    supports = [row.support for row in classes]
    n = int(sum(supports)) if all(support is not None for support in supports) else None
    return ReportTable(file, name, "", classes, (), None, n, None)


def _results(rows: list[Mapping], label: str | None) -> Iterator[Result]:
    for place, row in enumerate(rows[:1_000]):
        group = str(row.get(label)) if label else f"row {place + 1}"
        for key, value in row.items():
            found = number(value)
            if found is not None and key != label:
                status = status_of(found)
                yield Result(group, str(key), found if status == "ok" else None, None, status)
