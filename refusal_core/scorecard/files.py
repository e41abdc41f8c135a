"""The files that a suite names, each read once, with the digest of its bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from refusal_core.errors import InputError
from refusal_core.exchange_files import read_exchanges
from refusal_core.exchange_formats.json_values import JsonError, kind_of, parse
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.limits import JSON_ARRAY_BYTES, SUITE_EXCHANGES, check_size
from refusal_core.runs.predictions import Predictions, read_predictions
from refusal_core.scorecard.resolver import Resolver


@dataclass(frozen=True, slots=True)
class Pair:
    """An exchange before and after a change; each side is an Exchange, or the id of a row of the predictions file."""

    id: str
    original: Exchange | str
    changed: Exchange | str


@dataclass
class Files:
    """Reads through `resolver`. `digests` holds the SHA-256 of each file by the path as written."""

    resolver: Resolver
    digests: dict[str, str] = field(default_factory=dict)
    _read: dict[tuple, Any] = field(default_factory=dict)

    def predictions(self, written: str) -> Predictions:
        """A predictions.jsonl. Raises InputError."""
        return self._once(("predictions", written), lambda: read_predictions(self._open(written), _name(written)))

    def exchanges(self, written: str, columns: Mapping[str, str]) -> list[Exchange | BadRow]:
        """The rows of a file of exchanges; none for an empty file. Raises InputError."""
        return self._once(
            ("exchanges", written, tuple(sorted(columns.items()))), lambda: self._exchanges(written, columns)
        )

    def pairs(self, written: str) -> list[Pair]:
        """The pairs of a JSONL file; none for an empty file. Raises InputError with the line."""
        return self._once(("pairs", written), lambda: self._pairs(written))

    def first_keys(self, written: str) -> frozenset[str]:
        """The keys of the first object of a JSON-lines file; none for another format."""
        line = next((line for line in self.content(written)[:1_000_000].splitlines() if line.strip()), b"")
        try:
            value = parse(line.decode("utf-8-sig", "replace"))
        except JsonError:
            return frozenset()
        return frozenset(value) if isinstance(value, dict) else frozenset()

    def content(self, written: str) -> bytes:
        source = self.resolver.file(written)
        if isinstance(source, bytes):
            content = source
        else:
            check_size(source.stat().st_size, JSON_ARRAY_BYTES, what="the file", where=written, fix="split it")
            content = source.read_bytes()
        self.digests.setdefault(written, hashlib.sha256(content).hexdigest())
        return content

    def _open(self, written: str) -> Path | BytesIO:
        source = self.resolver.file(written)
        if isinstance(source, bytes):
            self.digests.setdefault(written, hashlib.sha256(source).hexdigest())
            return BytesIO(source)
        try:
            with source.open("rb") as file:
                self.digests.setdefault(written, hashlib.file_digest(file, "sha256").hexdigest())
        except OSError as problem:
            raise InputError(f"it cannot be read ({problem.strerror})", where=written) from None
        return source

    def _exchanges(self, written: str, columns: Mapping[str, str]) -> list[Exchange | BadRow]:
        source = self._open(written)
        if (source.getbuffer().nbytes if isinstance(source, BytesIO) else source.stat().st_size) == 0:
            return []
        rows: list[Exchange | BadRow] = []
        for row in read_exchanges(source, name=_name(written), columns=columns):
            rows.append(row)
            if len(rows) > SUITE_EXCHANGES:
                raise InputError(f"it holds more than {SUITE_EXCHANGES:,} rows", where=written, fix="split it")
        return rows

    def _pairs(self, written: str) -> list[Pair]:
        pairs: list[Pair] = []
        seen: set[str] = set()
        for number, line in enumerate(self.content(written).splitlines(), start=1):
            if line.strip():
                pair = _pair(line, number, f"{_name(written)}, line {number}")
                if pair.id in seen:
                    raise InputError(f'the id "{pair.id}" comes twice', where=f"{_name(written)}, line {number}")
                seen.add(pair.id)
                pairs.append(pair)
        return pairs

    def _once(self, key: tuple, read: Callable[[], Any]) -> Any:
        """The result of `read`, or the error that it raised the first time."""
        if key not in self._read:
            try:
                self._read[key] = read()
            except InputError as problem:
                self._read[key] = problem
        if isinstance(self._read[key], InputError):
            raise self._read[key]
        return self._read[key]


def _pair(line: bytes, number: int, where: str) -> Pair:
    try:
        row = parse(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8 text", where=where, fix="save it as UTF-8") from None
    except JsonError as error:
        raise InputError(f"it is {error}", where=where) from None
    if not isinstance(row, dict):
        raise InputError(f"it is {kind_of(row)}", where=where, why="an object with original and changed was expected")
    sides = []
    for key in ("original", "changed"):
        if key not in row:
            raise InputError(f'there is no "{key}"', where=where, why="each pair has an original and a changed")
        side = row[key]
        if isinstance(side, dict):
            first = sides[0] if sides else None
            base = {"prompt": first.prompt} if isinstance(first, Exchange) else {"prompt": ""}
            side = _exchange(base | side, key, where)
        elif not isinstance(side, str):
            raise InputError(f'"{key}" is {kind_of(side)}', where=where, why="an exchange or an id was expected")
        sides.append(side)
    given = row.get("id")
    return Pair(str(number if given is None else given), *sides)


def _exchange(side: dict, key: str, where: str) -> Exchange:
    for name in ("prompt", "response"):
        if not isinstance(side.get(name), str):
            raise InputError(f'the {name} of "{key}" is {kind_of(side.get(name))}, not text', where=where)
    return Exchange(side["prompt"], side["response"], id=side.get("id") if isinstance(side.get("id"), str) else None)


def _name(written: str) -> str:
    return written.replace("\\", "/").rpartition("/")[2] or written
