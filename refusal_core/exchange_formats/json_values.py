"""JSON as strangers write it: duplicate keys are seen, depth and digits are bounded, every fault is a JsonError."""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.decoder import WHITESPACE

from refusal_core.limits import JSON_DEPTH

_DIGITS = 300  # a longer integer is read as a float, as most other readers do (Python's own refuse 4,300)


class JsonError(ValueError):
    """`str()` says what is wrong as the end of a sentence: "not valid JSON (...)"."""


class Repeated(dict):
    """An object in which some keys came more than once, `names`; the last value of each is kept."""

    __slots__ = ("names",)


def parse(text: str) -> object:
    """The one JSON value of `text`. NaN and Infinity are read as floats. Raises JsonError."""
    value, end = parse_at(text, skip_space(text, 0))
    end = skip_space(text, end)
    if end < len(text):
        raise JsonError(f"not valid JSON (more text after the end of the value, {place(text, end)})")
    return value


def parse_at(text: str, at: int) -> tuple[object, int]:
    """The JSON value that begins at `at`, and where it ends. Raises JsonError."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        at_end = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        fault = "cut short" if at_end else error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise JsonError(f"not valid JSON ({fault}, {place(text, error.pos)})") from None
    except RecursionError:
        raise _TOO_DEEP from None
    brackets = text.count("[", at, end) + text.count("{", at, end)
    if brackets > JSON_DEPTH and _depth(value) > JSON_DEPTH:
        raise _TOO_DEEP
    return value, end


def skip_space(text: str, at: int) -> int:
    """The first place from `at` on that is not JSON white space."""
    return WHITESPACE.match(text, at).end()


def repeated_among(value: object, names: frozenset[str]) -> str | None:
    """The first of `names` that came more than once in the object `value`."""
    return next((name for name in value.names if name in names), None) if isinstance(value, Repeated) else None


def kind_of(value: object) -> str:
    """What a JSON value is, in words: "null", "a number", "a list"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number" if value == value else "NaN (a missing value)"
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def _object(members: list[tuple[str, object]]) -> dict:
    found = dict(members)
    if len(found) == len(members):
        return found
    names, seen = [], set()
    for name, _ in members:
        if name in seen and name not in names:
            names.append(name)
        seen.add(name)
    found = Repeated(found)
    found.names = tuple(names)
    return found


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


def place(text: str, at: int) -> str:
    """Where `at` is in `text`, in words."""
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return f"column {column:,}" if line == 1 else f"line {line:,}, column {column:,}"


def _depth(value: object) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        inner, depth = waiting.pop()
        if isinstance(inner, dict | list):
            deepest = max(deepest, depth)
            if depth > JSON_DEPTH:
                break
            waiting.extend((child, depth + 1) for child in (inner.values() if isinstance(inner, dict) else inner))
    return deepest


_TOO_DEEP = JsonError(f"nested more than {JSON_DEPTH} levels deep")
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)
