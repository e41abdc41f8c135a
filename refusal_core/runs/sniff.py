"""What a file is, told from its content: the readers of text, one after the other."""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import chain, islice

from refusal_core.errors import InputError
from refusal_core.exchange_formats.json_values import JsonError, parse, repeated_among
from refusal_core.jobs import Job
from refusal_core.limits import MATRIX_CLASSES, RUN_TEXT_BYTES
from refusal_core.runs import evaluations, flat, log_rows, matrices, report_data, report_text, state, trackio
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.columns import Columns
from refusal_core.runs.json_members import Broken, read_members, read_rows
from refusal_core.runs.model import Problem
from refusal_core.runs.predictions import Predictions, has_label, is_prediction, read_predictions
from refusal_core.runs.tables import Table

Found = tuple[list[Artefact], list[Problem]]
_FEW = 20


class NotOurs(Exception):
    """The file is no run artefact; `what` says what it seems to be."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def read_text(text: str, file: str, job: Job | None = None) -> Found:
    """The artefacts in a text. Raises InputError for an artefact that is broken, NotOurs for everything else."""
    start = text[:4096].lstrip()
    if start.startswith("{"):
        return _object(text, file, job)
    if start.startswith("["):
        return _list(text, file, job)
    if len(text) <= RUN_TEXT_BYTES:
        tables: list[Table] = []
        if report_text.has_header(text):
            tables += report_text.read_reports(text, file)
        if "onfusion" in text or "ONFUSION" in text:
            tables += matrices.from_text(text, file)
        if tables:
            return [_table(table, file, "report or matrix as text") for table in tables], []
    if "{'" in text:
        rows = log_rows.console_rows(text)
        few = list(islice(rows, _FEW))
        if any("loss" in key for _, row in few for key in row):
            artefact, problems = log_rows.read_json_log(chain(few, rows), file, "console log")
            return [artefact], problems
    if (found := _csv(text, file, job)) is not None:
        return found
    raise NotOurs("text without a report, matrix, table or log")


def _object(text: str, file: str, job: Job | None) -> Found:
    """A file that begins with an object: one object, or one a line."""
    if '"log_history"' in text:
        try:
            artefact, problems = state.read_state(text, file, job)
            return [artefact], problems
        except InputError as error:
            if len(text) > RUN_TEXT_BYTES or "another program" not in error.what:
                raise
    rows = log_rows.json_lines(text, job)
    first = next(rows, (0, None))
    second = next(rows, None)
    if isinstance(first[1], dict) and (second is not None or _is_line(first[1])):
        return _lines(chain([first], [second] if second else [], rows), text, file)
    return _whole(text, file, job)


def _is_line(row: Mapping) -> bool:
    return is_prediction(row) or trackio.is_inbox_line(row)


def _lines(rows, text: str, file: str) -> Found:
    few = list(islice(rows, _FEW))
    rows = chain(few, rows)
    objects = [row for _, row in few if isinstance(row, dict)]
    if any(map(is_prediction, objects)) and all(map(has_label, objects)):
        return _predictions(text, file)
    if any(trackio.is_inbox_line(row) for row in objects):
        return trackio.read_inbox(rows, file)
    if not any(log_rows.is_log_row(row) for row in objects):
        raise NotOurs("JSON lines that are neither a log nor predictions")
    artefact, problems = log_rows.read_json_log(rows, file)
    return [artefact], problems


def _predictions(text: str, file: str) -> Found:
    problems = []
    try:
        found = _strictly(text, file)
    except InputError:
        body = text.rstrip()
        whole, _, last = body.rpartition("\n")
        if not whole or last.endswith("}"):
            raise
        found = _strictly(whole, file)  # a last line that a crash cut off
        problems = [Problem(file, f"its last line is cut; {len(found):,} rows were kept", "evaluate again", "in part")]
    return [Artefact("predictions", "predictions", file, rows=len(found), predictions=found)], problems


def _strictly(text: str, file: str) -> Predictions:
    return read_predictions(io.BytesIO(text.encode("utf-8", "surrogatepass")), file)


def _whole(text: str, file: str, job: Job | None) -> Found:
    """One object, perhaps cut: what is whole of it is read."""
    try:
        value, problems = parse(text), []
    except JsonError as error:
        members = read_members(text, {}, job)
        if not members.values or members.fault is None:
            raise _not_json(file, error) from None
        value = members.values
        what = f"it is {members.fault}; {len(value):,} whole members were kept"
        problems = [Problem(file, what, "copy it again", "in part")]
    if twice := repeated_among(value, frozenset(value)):
        problems.append(Problem(file, f'the key "{twice}" comes twice; the last value was taken', "", "whole"))
    artefacts, more = of_object(value, file)
    return artefacts, problems + more


def of_object(value: dict, file: str) -> Found:
    """The artefacts of a JSON object that is no trainer state."""
    if flat.is_vocabulary(value):
        raise NotOurs("the vocabulary of a tokenizer")
    if (results := evaluations.read_evaluation(value, file)) is not None:
        return [_table(results, file, f"{results.tool} results")], []
    if report_data.is_report(value):
        return [_table(report_data.from_mapping(value, file), file, "classification report")], []
    if flat.is_config(value):
        return [flat.read_config(value, file)], []
    if (printed := trackio.read_printed(value, file)) is not None:
        if not printed[0]:
            raise NotOurs("a list that Trackio printed: it has no values to draw")
        return printed
    if (matrix := matrices.from_json(value, file)) is not None:
        return [_table(matrix, file, "confusion matrix")], []
    try:
        return flat.read_flat(value, file)
    except InputError as error:
        if "name of a measure" in error.what:
            raise NotOurs("JSON without a number that has the name of a measure") from None
        raise


def _list(text: str, file: str, job: Job | None) -> Found:
    """A JSON list: a matrix, log rows, predictions, a report or counts by class."""
    columns, first = Columns(file), []

    def add(row: dict) -> None:
        if len(first) < _FEW:
            first.append(row)
        elif logged():
            columns.add(row)

    def logged() -> bool:
        """Whether the first rows are those of a log; they are added as soon as that is known."""
        if not columns.rows and any(map(log_rows.is_log_row, first)):
            for row in first:
                columns.add(row)
        return columns.rows > 0

    if text[:4096].lstrip()[1:].lstrip().startswith("{"):
        problems = []
        try:
            _, end = read_rows(text, text.index("["), add, job)
            if text[end:].strip():
                problems = [Problem(file, "there is more text after the end of its list", "", "in part")]
        except Broken:
            logged()
            kept = f"{columns.rows:,} whole rows were kept"
            problems = [Problem(file, f"it is cut short, or no JSON further down; {kept}", "copy it again", "in part")]
        if logged():
            return [log_rows.history(columns, file, "JSON log")], problems
    if len(text) > RUN_TEXT_BYTES:
        raise NotOurs("a long JSON list that is no log")
    try:
        value = parse(text)
    except JsonError as error:
        raise _not_json(file, error) from None
    if (matrix := matrices.from_json(value, file)) is not None:
        return [_table(matrix, file, "confusion matrix")], []
    if isinstance(value, list) and (report := _records(value, file)) is not None:
        return [_table(report, file, "classification report")], []
    if why := matrices.why_not(value):
        raise InputError("it is a list of lists, but no confusion matrix", where=file, why=why)
    raise NotOurs("a JSON list that is neither a matrix nor a log")


def _records(value: list, file: str) -> Table | None:
    """A report as a list of objects, one a class."""
    if not value or not all(isinstance(row, dict) for row in value):
        return None
    header = list(value[0])
    rows = [["" if row.get(key) is None else str(row.get(key)) for key in header] for row in value]
    return report_data.from_rows(header, rows, file)


def _csv(text: str, file: str, job: Job | None) -> Found | None:
    """A report, matrix or history as CSV; None when the text is no table."""
    table = log_rows.csv_table(text)
    if table is None:
        return None
    header, rows = table
    few = list(islice(rows, MATRIX_CLASSES + _FEW))
    if len(few) < MATRIX_CLASSES + _FEW:
        found = report_data.from_rows(header, few, file)
        if found is None and not log_rows.has_stamp(header):
            found = matrices.from_rows(header, few, file)
        if found is not None:
            return [_table(found, file, "report or matrix as CSV")], []
    rows = chain(few, rows)
    try:
        return [log_rows.read_csv_log(header, rows, file, job)], []
    except InputError as error:
        if "step or an epoch" in error.what:
            raise NotOurs("a table that is no report, no matrix and no history") from None
        raise


def _table(table: Table, file: str, what: str) -> Artefact:
    return Artefact("table", what, file, part=table.name, table=table)


def _not_json(file: str, error: JsonError) -> InputError:
    return InputError(f"it is {error}", where=file, fix="copy it again")
