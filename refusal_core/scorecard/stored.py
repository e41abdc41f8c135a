"""A scorecard back from its scorecard.json: everything but the texts of exchanges, which no JSON holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refusal_core.errors import InputError
from refusal_core.exchange_formats.json_values import JsonError, parse
from refusal_core.metrics.intervals import Interval, Rate
from refusal_core.scorecard.result import SCHEMA, ColumnResult, Evidence, Example, Row, Scorecard


def from_json(text: str, name: str = "scorecard.json") -> Scorecard:
    """The scorecard whose `report.json_text` is `text`. Raises InputError for another schema or a damaged file."""
    try:
        data = parse(text)
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            found = data.get("schema") if isinstance(data, dict) else None
            raise InputError(f"its schema is {found!r}", where=name, why=f"{SCHEMA} was expected")
        return _scorecard(data)
    except (JsonError, KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InputError("it is no scorecard", where=name, why=f"reading it met {problem}") from None


def _scorecard(data: Mapping[str, Any]) -> Scorecard:
    suite = data["suite"]
    return Scorecard(
        suite=suite["name"],
        suite_sha256=suite["sha256"],
        description=suite["description"],
        data_sha256=data["data_sha256"],
        checkpoints=tuple(
            ColumnResult(**{**column, "notes": tuple(column["notes"])}) for column in data["checkpoints"]
        ),
        baseline=data["baseline"],
        rows=tuple(map(_row, data["rows"])),
        counts=data["counts"],
        exit_code=data["exit_code"],
        sentence=data["sentence"],
        settings=data["settings"],
        notes=tuple(data["notes"]),
    )


def _row(data: Mapping[str, Any]) -> Row:
    return Row(**{**data, "interval": _interval(data["interval"]), "evidence": _evidence(data["evidence"])})


def _evidence(data: Mapping[str, Any]) -> Evidence:
    given = dict(data)
    for name in ("worse", "better", "notes"):
        if name in given:
            given[name] = tuple(given[name])
    for name in ("candidate", "baseline", "raw", "corrected"):
        if name in given:
            given[name] = _rate(given[name])
    if "failing" in given:
        given["failing"] = tuple(Example(**one) for one in given["failing"])
    return Evidence(**given)


def _rate(data: Mapping[str, Any]) -> Rate:
    return Rate(data["value"], data["n"], _interval(data["interval"]))


def _interval(data: Mapping[str, Any] | None) -> Interval | None:
    return None if data is None else Interval(**data)
