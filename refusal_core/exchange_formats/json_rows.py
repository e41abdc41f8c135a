"""Rows of JSON: one object a line (streamed), or a list or objects spread over lines (read whole, within a limit)."""

from __future__ import annotations

from collections.abc import Iterator

from refusal_core.exchange_formats.bytes_in import Lines, Source
from refusal_core.exchange_formats.json_values import (
    JsonError,
    kind_of,
    parse,
    parse_at,
    place,
    repeated_among,
    skip_space,
)
from refusal_core.exchange_formats.rows import Row
from refusal_core.limits import JSON_ARRAY_BYTES, LINE_BYTES, check_size, show_bytes

_MESSAGE_KEYS = frozenset(("role", "content", "from", "value"))


def read_line_rows(lines: Lines, names: frozenset[str]) -> Iterator[Row]:
    """One Row a line; blank lines are passed over and counted. `names` are the keys that may not come twice."""
    while line := lines.next(LINE_BYTES + 1):
        if len(line) > LINE_BYTES and not line.endswith(b"\n"):
            lines.skip_rest(LINE_BYTES)
            yield Row(lines.number, None, f"the line is longer than {show_bytes(LINE_BYTES)}")
        elif line.strip():
            yield _line_row(line, lines.number, names)


def is_spread_out(line: bytes) -> bool:
    """Whether an object that begins on `line` goes on on the next one, as in a file written for people."""
    text = line.strip()
    return text.startswith(b"{") and text.endswith((b"{", b"[", b","))


def read_whole_rows(source: Source, lines: Lines, names: frozenset[str]) -> Iterator[Row]:
    """One Row an element of a JSON list, or an object of several that follow each other; numbered from 1.

    Raises InputError when the text is over limits.JSON_ARRAY_BYTES, is not UTF-8, or stops being JSON: the elements
    before that place have been yielded.
    """
    whole = lines.rest(JSON_ARRAY_BYTES + 1)
    check_size(
        len(whole), JSON_ARRAY_BYTES, what="the JSON text", where=source.name, fix="write one object a line (JSONL)"
    )
    try:
        text = whole.decode()
    except UnicodeDecodeError as error:
        raise source.error(f"is not UTF-8 at byte {error.start + 1:,}", fix=NOT_UTF8) from None
    del whole
    number = 0
    try:
        for number, value in enumerate(_values(text), start=1):
            yield _value_row(value, number, names)
    except JsonError as error:
        fix = "write one object a line (JSONL), so that one bad row does not stop the rest"
        raise source.error(f"is {error}", why=f"rows before that place: {number:,}", fix=fix) from None


NOT_UTF8 = "it is perhaps Windows-1252 or Latin-1 text: save it as UTF-8"


def _line_row(line: bytes, number: int, names: frozenset[str]) -> Row:
    try:
        text = line.decode("utf-8-sig")  # files that were joined hold a BOM at a later line too
    except UnicodeDecodeError as error:
        return Row(number, None, f"the line is not UTF-8 at byte {error.start + 1:,}; {NOT_UTF8}")
    try:
        return _value_row(parse(text.rstrip("\r\n")), number, names)
    except JsonError as error:
        return Row(number, None, f"the line is {error}")


def _value_row(value: object, number: int, names: frozenset[str]) -> Row:
    if not isinstance(value, dict):
        return Row(number, None, f"the row is {kind_of(value)}, not an object")
    twice = repeated_among(value, names)
    for name in names & value.keys() if twice is None else ():
        for message in value[name] if isinstance(value[name], list) else ():
            twice = twice or repeated_among(message, _MESSAGE_KEYS)
    return Row(number, value, f'the key "{twice}" comes twice' if twice else None)


def _values(text: str) -> Iterator[object]:
    """The elements of the list that `text` is, or the values that follow each other in it."""
    at, first = skip_space(text, 0), True
    listed = text.startswith("[", at)
    at += listed
    while True:
        at = skip_space(text, at)
        if listed and text.startswith("]", at):
            if skip_space(text, at + 1) < len(text):
                raise JsonError(f"not valid JSON (more text after the end of the list, {place(text, at + 1)})")
            return
        if at == len(text):
            if listed:
                raise JsonError(f"not valid JSON (cut short, {place(text, at)})")
            return
        if listed and not first:
            if not text.startswith(",", at):
                raise JsonError(f"not valid JSON (expecting ',' between the rows, {place(text, at)})")
            at = skip_space(text, at + 1)
        value, at = parse_at(text, at)
        first = False
        yield value
