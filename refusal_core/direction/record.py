"""A finished study as pages and the store keep it: the result, study.json to the letter, and its test rows.

No activations are in it; the direction [d] is, since it is what people take away.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import json
import types
import typing
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from refusal_core.activations.npz import Export
from refusal_core.direction.baselines import CategoryIdentity, Majority
from refusal_core.direction.examples import Examples
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.nulls import Null, RandomDirections
from refusal_core.direction.result import SCHEMA, Study
from refusal_core.direction.variants import Variant
from refusal_core.errors import InputError
from refusal_core.limits import STUDY_STORED_BYTES, check_size
from refusal_core.reports import to_json

_PARTS = {  # of sections that are plain mappings
    "baselines": {"majority": Majority, "category_identity": CategoryIdentity, "random_directions": RandomDirections},
    "nulls": dict.fromkeys(("shuffled_labels", "shuffled_categories", "within_categories"), Null),
    "variants": {"scaled": Variant, "shrunk_covariance": Variant},
}
# Sections that came after the first studies were stored, and what stands in for them there.
_LATER = {"auroc_interval": {"not_available": "the study was stored before there was one"}}
_ARRAYS = ("unit", "projections", "margins")
_UNPACKED_BYTES = 20 * STUDY_STORED_BYTES


@dataclass(frozen=True, eq=False)
class Record:
    """`text` is study.json; `command` the line that writes it; `title` names the files for a reader."""

    study: Study
    text: str
    examples: Examples | None
    command: str
    title: str

    @cached_property
    def sha256(self) -> str:
        """Of study.json: the name under which it is stored and shared."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def test_export(self) -> Export | None:
        """The test rows as an export whose activations are zeros that take no room, for what needs the labels only."""
        rows, described = self.examples, self.study.inputs["test"]
        if rows is None:
            return None
        return Export(
            name=self.title,
            sha256=described["sha256"],
            activations=np.broadcast_to(np.float32(0), (rows.n, described["dimensions"])),
            labels=rows.labels,
            ids=rows.ids,
            categories=tuple(rows.categories[code] for code in rows.code),
            dtype=described["dtype"],
            largest=0.0,
            part=described.get("part"),
        )

    def packed(self) -> bytes:
        """For the store. Raises InputError for a study that is too large to be kept."""
        examples = self.examples
        rows = examples and {
            "ids": list(examples.ids),
            "labels": examples.labels.tolist(),
            "categories": list(examples.categories),
            "code": examples.code.tolist(),
            "margins": _coded(examples.margins),
        }
        found = {"text": self.text, "unit": _coded(self.study.unit), "examples": rows}
        packed = zlib.compress(to_json({**found, "command": self.command, "title": self.title}).encode(), 6)
        check_size(
            len(packed), STUDY_STORED_BYTES, what="the study", where="the store", fix="download study.json instead"
        )
        return packed


def record_of(study: Study, examples: Examples | None, *, command: str, title: str) -> Record:
    return Record(study, study.to_json(), examples, command, title)


def unpack(packed: bytes) -> Record:
    """The record that `packed` gave. Raises InputError for bytes that are none, or of another version."""
    try:
        unpacker = zlib.decompressobj()
        found = json.loads(unpacker.decompress(packed, _UNPACKED_BYTES))
        rows, unit = found["examples"], _decoded(found["unit"])
        margins = _decoded(rows["margins"]) if rows else np.empty(0)
        study = study_of(json.loads(found["text"]), unit=unit, margins=margins)
        examples = rows and Examples(
            tuple(rows["ids"]),
            np.array(rows["labels"], np.int8),
            tuple(rows["categories"]),
            np.array(rows["code"], np.intp),
            margins,
            study.direction["threshold"],
        )
        return Record(study, found["text"], examples or None, found["command"], found["title"])
    except (KeyError, ValueError, TypeError, AttributeError, zlib.error, binascii.Error, RecursionError) as problem:
        raise InputError(
            "the stored study cannot be read",
            where="the store",
            why=f"it is damaged or of another version ({type(problem).__name__})",
            fix="run it again",
        ) from problem


def study_of(sections: Mapping, *, unit: np.ndarray, margins: np.ndarray) -> Study:
    """The study of which `sections` is the parsed study.json. Raises KeyError or TypeError for other content."""
    if sections["schema"] != SCHEMA:
        raise ValueError(sections["schema"])
    sections = {**_LATER, **sections}
    hints = typing.get_type_hints(Study)
    given = {f.name: f for f in dataclasses.fields(Study) if f.name not in (*_ARRAYS, "held_out_only")}
    built = {}
    for name in given:
        if name in _PARTS and "not_available" not in sections[name]:
            built[name] = {key: _built(_PARTS[name][key] | NotAvailable, one) for key, one in sections[name].items()}
        elif name in _PARTS:
            built[name] = NotAvailable(**sections[name])
        else:
            built[name] = _built(hints[name], sections[name])
    projections = margins + built["direction"]["threshold"] if len(margins) else np.empty(0)
    return Study(**built, unit=unit, projections=projections, margins=margins)


def _built(kind: object, value: object) -> object:
    """`value`, parsed JSON, as the type `kind`: a frozen result of this package, a tuple of them, or what it is."""
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        options = [one for one in typing.get_args(kind) if one is not type(None)]
        reason = isinstance(value, dict) and value.keys() == {"not_available"}
        if NotAvailable in options and reason:
            return NotAvailable(**value)
        return _built(next(one for one in options if one is not NotAvailable), value)
    if origin is tuple:
        return tuple(_built(typing.get_args(kind)[0], one) for one in value)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{name: _built(hints[name], one) for name, one in value.items()})
    return value


def _coded(numbers: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, "<f8").tobytes()).decode()


def _decoded(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f8").astype(np.float64)
