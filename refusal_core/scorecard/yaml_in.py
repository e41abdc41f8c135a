"""YAML from strangers as plain data, with the line and column of everything in it.

PyYAML's safe parser reads the events; the values are made here, so that a tag can make no object, "no" stays a word
(YAML 1.2), a repeated key is seen, and an alias cannot grow without end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from refusal_core.errors import InputError
from refusal_core.limits import SUITE_BYTES, SUITE_DEPTH, SUITE_VALUES, check_size

Path = tuple[str | int, ...]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


@dataclass(frozen=True)
class Document:
    """`data` is what JSON could hold. `places` maps the path of each value (keys and positions) to (line, column)."""

    name: str
    data: object
    places: Mapping[Path, tuple[int, int]]

    def where(self, path: Path) -> str:
        """The file's name with line and column of what lies at `path`, or of the nearest thing around it."""
        while path and path not in self.places:
            path = path[:-1]
        line, column = self.places.get(path, (1, 1))
        return f"{self.name}, line {line}, column {column}"


def read_yaml(content: bytes, name: str) -> Document:
    """The one document in `content`. Raises InputError, with line and column, for all that is no plain data."""
    check_size(len(content), SUITE_BYTES, what="the file", where=name, fix="split the suite")
    builder = _Builder(name)
    try:
        events = yaml.parse(_text(content, name), Loader=_LOADER)
        data = builder.document(events)
    except yaml.YAMLError as error:
        raise _syntax(error, name) from None
    except RecursionError:
        raise InputError(f"it is nested more than {SUITE_DEPTH} levels deep", where=name) from None
    return Document(name, data, builder.places)


def _text(content: bytes, name: str) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("it is not UTF-8 text", where=f"{name}, line {line}", fix="save it as UTF-8") from None


def _syntax(error: yaml.YAMLError, name: str) -> InputError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "a character that YAML forbids"
    where = f"{name}, line {mark.line + 1}, column {mark.column + 1}" if mark else name
    context = getattr(error, "context", None)
    what = f"it is not valid YAML ({problem}{f' {context}' if context else ''})"
    return InputError(what, where=where, fix="check indentation, quotes and colons there")


@dataclass
class _Builder:
    name: str
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)
    _anchors: dict[str, tuple[object, int]] = field(default_factory=dict)
    _count: int = 0

    def document(self, events: Iterator[yaml.Event]) -> object:
        next(events)  # the stream starts
        if isinstance(next(events), yaml.StreamEndEvent):
            raise InputError("the file is empty", where=self.name, fix="write a suite, or draft one")
        data = self._value(next(events), events, ())
        next(events)  # the document ends
        if not isinstance(after := next(events), yaml.StreamEndEvent):
            raise self._fault("a second document begins", after, fix="keep one suite a file")
        return data

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], path: Path) -> object:
        self._see(event, path)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise self._fault(f"the alias *{event.anchor} has no finished anchor before it", event)
            value, size = self._anchors[event.anchor]
            self._add(size, event)
            return value
        before = self._count
        if event.tag is not None and (isinstance(event, yaml.CollectionStartEvent) or event.tag != "!"):
            raise self._fault(f"the tag {event.tag} is not read", event, fix="write plain values")
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(events, path)
        else:
            value = self._mapping(events, path)
        self._add(1, event)
        if event.anchor:
            self._anchors[event.anchor] = value, self._count - before
        return value

    def _see(self, event: yaml.Event, path: Path) -> None:
        if len(path) > SUITE_DEPTH:
            raise self._fault(f"it is nested more than {SUITE_DEPTH} levels deep", event)
        mark = event.start_mark
        self.places.setdefault(path, (mark.line + 1, mark.column + 1))

    def _add(self, size: int, event: yaml.Event) -> None:
        """Count values, those of an alias each time it is used."""
        self._count += size
        if self._count > SUITE_VALUES:
            why = "an alias counts with all that it stands for"
            raise self._fault(f"it holds more than {SUITE_VALUES:,} values", event, why=why)

    def _sequence(self, events: Iterator[yaml.Event], path: Path) -> list:
        items: list = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(self._value(event, events, (*path, len(items))))
        return items

    def _mapping(self, events: Iterator[yaml.Event], path: Path) -> dict[str, object]:
        items: dict[str, object] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.tag not in (None, "!"):
                raise self._fault("a key is no plain text", event, fix="quote it when braces or stars are part of it")
            key = event.value
            if key == "<<" and not event.style:
                raise self._fault('the merge key "<<" is not read', event, fix="repeat the keys")
            if key in items:
                raise self._fault(f'the key "{key}" is there twice', event, fix="remove one")
            mark = event.start_mark
            self.places[(*path, key)] = mark.line + 1, mark.column + 1
            self._add(1, event)
            items[key] = self._value(next(events), events, (*path, key))
        return items

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        text = event.value
        if event.style or event.tag == "!":  # quoted, or a block
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _WHOLE.fullmatch(text):
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) else text

    def _fault(self, what: str, event: yaml.Event, *, why: str = "", fix: str = "") -> InputError:
        mark = event.start_mark
        return InputError(what, where=f"{self.name}, line {mark.line + 1}, column {mark.column + 1}", why=why, fix=fix)
