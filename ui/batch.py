"""What the Batch view does apart from drawing: which rows are shown, what a table holds, and what is downloaded.

Imports no streamlit.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from refusal_core.classifier.batch import Batch, Summary, corrected, summarise
from refusal_core.classifier.stream import Answered
from refusal_core.errors import one_line
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import show_seconds
from refusal_core.labels import Fold
from refusal_core.limits import TABLE_ROWS
from refusal_core.reports import to_json, write_csv
from ui.playground import command_name, near

if TYPE_CHECKING:
    from ui.batches import Task

PROMPT_SHOWN, RESPONSE_SHOWN, VALUE_SHOWN = 120, 160, 60  # characters in a table's cell
COLUMNS_SHOWN = 8  # of the file's own columns in the table; all are in the downloads
DISAGREE, UNSURE, WRONG, CORRECTED, ERRORS = "disagree", "unsure", "wrong", "corrected", "errors"
MARKS: Mapping[str, str] = {
    DISAGREE: "model and matcher disagree",
    UNSURE: "low confidence",
    WRONG: "label differs",
    CORRECTED: "corrected here",
    ERRORS: "not classified",
}
FILE_ORDER, LEAST_SURE = "file", "least sure"
ORDERS: Mapping[str, str] = {FILE_ORDER: "as in the file", LEAST_SURE: "least sure first"}
NO_CLASS = "none"


@dataclass(frozen=True)
class Filters:
    """Which rows are listed: of these classes (none: all), with every one of these marks, holding this text."""

    classes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    text: str = ""
    order: str = FILE_ORDER


def listed(batch: Batch, summary: Summary, labels: Mapping[int, str], filters: Filters) -> list[int]:
    """Positions in `batch.rows` that pass `filters`, in their order. `labels` are corrections by position."""
    marked = {
        DISAGREE: set(summary.disagreements),
        UNSURE: set(summary.low_confidence),
        WRONG: {i for i, row in enumerate(batch.rows) if differs(row)},
        CORRECTED: set(labels),
        ERRORS: set(batch.errors),
    }
    wanted = [marked[mark] for mark in filters.marks]
    text = filters.text.strip().casefold()
    found = [
        i
        for i, row in enumerate(batch.rows)
        if (not filters.classes or row.answer.label in filters.classes)
        and all(i in positions for positions in wanted)
        and (not text or _holds(row, text))
    ]
    if filters.order == LEAST_SURE:
        found.sort(key=lambda i: (batch.rows[i].confidence is None, batch.rows[i].confidence or 0.0, i))
    return found


def marks_of(batch: Batch, labels: Mapping[int, str]) -> list[str]:
    """The marks that can be asked for in this batch."""
    asked = {WRONG: batch.labelled or bool(labels), CORRECTED: bool(labels), ERRORS: bool(batch.errors)}
    return [mark for mark in MARKS if asked.get(mark, True)]


def differs(row: Answered) -> bool:
    """Whether the row has a true label and the answer is another."""
    label = row.row.label if isinstance(row.row, Exchange) else None
    return label is not None and row.answer.label is not None and row.answer.label != label


def view_of(task: Task, fold: Fold, group: str | None, threshold: float) -> tuple[Batch, Summary]:
    """The task's batch with the corrections as true labels, and its summary; the latest is kept with the task."""
    key = (fold.key, group, threshold, tuple(task.labels.items()))
    if task.latest_view is None or task.latest_view[0] != key:
        batch = corrected(task.batch, task.labels) if task.labels else task.batch
        group_by = group if group in batch.columns else None
        task.latest_view = (key, batch, summarise(batch, fold=fold, group_by=group_by, threshold=threshold))
    return task.latest_view[1:]


def pages(rows: Sequence[int]) -> int:
    return max(1, -(-len(rows) // TABLE_ROWS))


def page_of(rows: Sequence[int], number: int) -> list[int]:
    """The positions on page `number`, from 1."""
    return list(rows[(number - 1) * TABLE_ROWS : number * TABLE_ROWS])


def table(batch: Batch, rows: Sequence[int], labels: Mapping[int, str], fold: Fold) -> list[dict[str, object]]:
    """A row of cells for each position, long texts cut."""
    labelled, columns = batch.labelled or bool(labels), batch.columns[:COLUMNS_SHOWN]
    return [_cells(batch.rows[i], fold, labelled, columns, corrected_to=labels.get(i)) for i in rows]


def refused_is_defined(batch: Batch, fold: Fold) -> bool:
    """Whether the checkpoint has all classes that the fold counts as refused."""
    return fold.refused <= set(batch.checkpoint.labels)


def bad_rows(batch: Batch) -> list[dict[str, object]]:
    """Rows without an answer: line of the file, id, and why."""
    found = []
    for row in (batch.rows[i] for i in batch.errors):
        found.append({"line": row.row.line, "id": _shown(row.row.id), "why": one_line(row.answer.error or "", 400)})
    return found


def as_jsonl(batch: Batch) -> str:
    """The lines that `classify` writes for the file."""
    lines = ({**row.answer.as_row(), "matcher": row.matched.label if row.matched else None} for row in batch.rows)
    return "".join(to_json(line) + "\n" for line in lines)


def as_csv(batch: Batch, labels: Mapping[int, str], fold: Fold) -> str:
    """Every row with its texts, its answer and the file's own columns, safe to open in a spreadsheet."""
    classes, own = batch.checkpoint.labels, batch.columns
    header = ["line", "id", "class", "probability", f"refused ({fold.name})", "phrase matcher", "label", "corrected to"]
    header += [f"p({name})" for name in classes] + ["warnings", "error", "prompt", "response", *own]
    file = StringIO(newline="")
    write_csv(file, header, (_csv_row(row, i, labels, fold, classes, own) for i, row in enumerate(batch.rows)))
    return file.getvalue()


def command(task: Task) -> str:
    """The shell line that gives the downloaded JSON lines; an uploaded file is to lie in the app's folder."""
    file = near(task.path) if task.path else task.name
    words = ["python", "-m", "refusal_core.cli", "classify", file, "--output", "answers.jsonl"]
    words += ["--checkpoint", command_name(task.choice, task.batch.checkpoint)]
    for ours, key in task.columns.items():
        if ours != key:
            words += ["--map", f"{ours}={key}"]
    return shlex.join(words + (["--every-turn"] if task.every_turn else []))


def how_it_went(task: Task) -> str:
    """Rows, time and rate in one sentence, and whether it was stopped."""
    batch = task.batch
    rate = len(batch.rows) / task.seconds if task.seconds else 0.0
    shown = f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.2g}"
    done = f"{len(batch.rows):,} rows in {show_seconds(task.seconds)}, {shown} rows/s"
    if batch.stopped:
        return f"Stopped: {len(batch.rows):,} of {batch.total:,} rows are classified, and what follows is about them."
    return f"{done}."


def _cells(
    row: Answered, fold: Fold, labelled: bool, columns: Sequence[str], *, corrected_to: str | None
) -> dict[str, object]:
    exchange = row.row if isinstance(row.row, Exchange) else None
    cells: dict[str, object] = {"line": row.row.line, "class": row.answer.label or NO_CLASS}
    cells["p"] = row.confidence
    cells["refused"] = _yes_no(row.answer.label and fold.is_refused(row.answer.label))
    cells["matcher"] = row.matched.label if row.matched else ""
    if labelled:
        cells["label"] = f"{corrected_to} (corrected)" if corrected_to else _shown(exchange and exchange.label)
    text = exchange.response[: RESPONSE_SHOWN + 1] if exchange else row.answer.error or ""
    cells["response"] = one_line(text, RESPONSE_SHOWN)
    cells["prompt"] = one_line(exchange.prompt[: PROMPT_SHOWN + 1], PROMPT_SHOWN) if exchange else ""
    for name in columns:
        shown = one_line(name, 40)
        cells[f"{shown} (file)" if shown in cells else shown] = _shown(exchange.extra.get(name)) if exchange else ""
    return cells


def _csv_row(row: Answered, at: int, labels: Mapping[int, str], fold: Fold, classes, own) -> list[object]:
    exchange = row.row if isinstance(row.row, Exchange) else None
    answer, p = row.answer, row.answer.probabilities or {}
    refused = fold.is_refused(answer.label) if answer.label else None
    cells = [row.row.line, row.row.id, answer.label, row.confidence, refused, row.matched and row.matched.label]
    cells += [exchange and exchange.label, labels.get(at), *(p.get(name) for name in classes)]
    cells += [" ".join(answer.warnings), answer.error, exchange and exchange.prompt, exchange and exchange.response]
    return cells + [plain_value(exchange.extra.get(name)) if exchange else None for name in own]


def plain_value(value: object) -> object:
    """A value of the file's own columns: lists and objects as JSON."""
    return value if value is None or isinstance(value, str | int | float) else to_json(value)


def _shown(value: object) -> str:
    return "" if value is None else one_line(str(plain_value(value)), VALUE_SHOWN)


def _yes_no(value: object) -> str:
    return {True: "yes", False: "no"}.get(value, "")


def _holds(row: Answered, text: str) -> bool:
    if isinstance(row.row, BadRow):
        return text in row.row.error.casefold()
    return text in row.row.prompt.casefold() or text in row.row.response.casefold()
