"""A JSON object read member by member: what a cut file still holds whole is kept, and long lists are streamed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from refusal_core.exchange_formats.json_values import JsonError, parse_at, place
from refusal_core.jobs import Job

_SPACE = re.compile(r"[ \t\n\r]*")
_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_ROWS_BETWEEN_LOOKS = 20_000
_scan = json.JSONDecoder().scan_once


@dataclass
class Members:
    """What was read: `values` by key, and where the text stopped being JSON."""

    values: dict[str, object] = field(default_factory=dict)
    fault: str | None = None
    """"cut short, line 12, column 3"; None for a whole object."""
    repeated: tuple[str, ...] = ()
    """Keys that came twice; the last value is kept."""


class Broken(Exception):
    """The text is no JSON from `at` on."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def read_members(text: str, rows: Mapping[str, Callable[[dict], None]], job: Job | None = None, at: int = 0) -> Members:
    """The members of the object that `text` is. The elements of a list under a key of `rows` go to its function one by
    one, and its value becomes their number.

    Never raises for what is wrong with the text: `fault` says it.
    """
    members, repeated = Members(), []
    at = _SPACE.match(text, at).end()
    try:
        at = _expect(text, at, "{")
        while not text.startswith("}", at):
            if not text.startswith('"', at):
                raise Broken(at)
            key, at = _value(text, at)
            if not (colon := _COLON.match(text, at)):
                raise Broken(at)
            at = colon.end()
            if key in members.values:
                repeated.append(key)
            if key in rows and text.startswith("[", at):
                members.values[key] = 0  # the key counts also when its list breaks off
                members.values[key], at = read_rows(text, at, rows[key], job)
            else:
                members.values[key], at = _value(text, at)
            at = _next(text, at, "}")
        at = _SPACE.match(text, at + 1).end()
        if at < len(text):
            members.fault = f"more text after the end, {place(text, at)}"
    except Broken as broken:
        cut = not text[broken.at :].strip() or broken.at >= len(text) - 1
        members.fault = f"{'cut short' if cut or _runs_out(text, broken.at) else 'not JSON'}, {place(text, broken.at)}"
    members.repeated = tuple(dict.fromkeys(repeated))
    return members


def read_rows(text: str, at: int, add: Callable[[dict], None], job: Job | None = None) -> tuple[int, int]:
    """Hand each object of the list at `at` to `add`; (how many elements, where the list ends). Raises Broken.

    Elements that are no objects are passed over.
    """
    at = _SPACE.match(text, at + 1).end()
    count, end, match, scan = 0, len(text), _COMMA.match, _scan
    if text.startswith("]", at):
        return 0, at + 1
    while True:
        try:
            row, after = scan(text, at)
        except StopIteration:
            raise Broken(at) from None
        except (ValueError, RecursionError):
            row, after = _value(text, at)
        if isinstance(row, dict):
            add(row)
        count += 1
        if job and count % _ROWS_BETWEEN_LOOKS == 0:
            job.check()
        comma = match(text, after)
        if comma:
            at = comma.end()
            if at == end:
                raise Broken(at)
            continue
        at = _SPACE.match(text, after).end()
        if text.startswith("]", at):
            return count, at + 1
        raise Broken(at)


def _value(text: str, at: int) -> tuple[object, int]:
    """One value, its depth and digits bounded."""
    try:
        return parse_at(text, at)
    except JsonError:
        raise Broken(at) from None


def _expect(text: str, at: int, mark: str) -> int:
    if not text.startswith(mark, at):
        raise Broken(at)
    return _SPACE.match(text, at + 1).end()


def _next(text: str, at: int, end: str) -> int:
    """Where the next member begins, or where `end` stands."""
    if comma := _COMMA.match(text, at):
        at = comma.end()
        if text.startswith(end, at):  # a comma too many
            raise Broken(at)
        return at
    at = _SPACE.match(text, at).end()
    if not text.startswith(end, at):
        raise Broken(at)
    return at


def _runs_out(text: str, at: int) -> bool:
    """Whether the value at `at` is broken because the text ends inside it."""
    try:
        _scan(text, at)
    except StopIteration as stop:
        return stop.value is None or stop.value >= len(text) - 1
    except json.JSONDecodeError as error:
        return error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False
