"""The suite: a YAML file as types. Unknown keys and values of other types are errors with their line and column."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from refusal_core.errors import InputError, one_line
from refusal_core.labels import DEFAULT_FOLD, LABELS
from refusal_core.limits import PREDICTION_CLASSES, SCORECARD_RESAMPLES, SUITE_COLUMNS
from refusal_core.scorecard.assertions import TYPES, AnyAssertion, Name, Part, Severity
from refusal_core.scorecard.references import check_references
from refusal_core.scorecard.yaml_in import Document, read_yaml


class _Fields(Part):
    id_field: Name = Field("id", description="Key of the id; a row without one has its line number.")
    prompt_field: Name = Field("prompt", description="Key of the prompt.")
    response_field: Name = Field("response", description="Key of the response.")


class Checkpoint(_Fields):
    """A column: a classifier checkpoint (path, predictions, or both), or a language model's answers (responses)."""

    id: Name = Field(description="Name of the column.")
    path: str | None = Field(None, description="Checkpoint folder, starter, or hub:owner/name@revision; it is run.")
    predictions: str | None = Field(None, description="Its predictions.jsonl; nothing is run where that suffices.")
    run: str | None = Field(None, description="Folder of its training, for training assertions; else around path.")
    responses: str | None = Field(None, description="JSONL of a language model's answers.")
    classifier: str | None = Field(None, description="What labels the responses: as path; starter when not given.")
    label_field: Name | None = Field(None, description="Key of a label that the responses have: no classifier is run.")
    validated_on: str | None = Field(
        None, description="Labelled rows that tell the classifier's errors: exchanges, or its predictions of them."
    )
    cluster_field: Name | None = Field(None, description="Key of the conversation: resampled as a whole.")
    gate: bool = Field(True, description="false: shown, but no part of the exit code.")

    @property
    def kind(self) -> Literal["checkpoint", "responses"]:
        return "checkpoint" if self.responses is None else "responses"

    @model_validator(mode="after")
    def _one_kind(self) -> Checkpoint:
        own = [key for key in ("path", "predictions", "run") if getattr(self, key) is not None]
        theirs = [key for key in ("classifier", "label_field", "validated_on", "cluster_field") if getattr(self, key)]
        if self.responses is not None and own:
            raise ValueError(f"responses and {own[0]} exclude each other: a column is of one kind")
        if self.responses is None and not (self.path or self.predictions):
            raise ValueError("a checkpoint needs path, predictions or responses")
        if self.responses is None and theirs:
            raise ValueError(f"{theirs[0]} belongs to a column with responses")
        if self.classifier and self.label_field:
            raise ValueError("classifier and label_field exclude each other")
        if self.validated_on and self.label_field:
            raise ValueError("validated_on tells a classifier's errors, and label_field uses none")
        return self


class Dataset(_Fields):
    """Labelled rows: a file of exchanges, or (without path) a split of the checkpoints' predictions files."""

    id: Name = Field(description="Name, as assertions use it.")
    path: str | None = Field(None, description="JSONL, CSV or Parquet of labelled exchanges.")
    split: str | None = Field(None, description="The split of the predictions files that belongs to it.")
    label_field: Name = Field("label", description="Key of the true class.")
    slice_fields: list[Name] = Field([], description="Keys that slices may name.")
    cluster_field: Name | None = Field(None, description="Key of the conversation: resampled as a whole.")

    @model_validator(mode="after")
    def _something(self) -> Dataset:
        if self.path is None and self.split is None:
            raise ValueError("a dataset needs path or split")
        if self.path is None and (self.slice_fields or self.cluster_field):
            raise ValueError("slice_fields and cluster_field are columns of a file: give its path")
        return self


class Interval(Part):
    """How intervals are made."""

    method: Literal["auto"] = Field("auto", description="Wilson for proportions, bootstrap for the rest.")
    n_resamples: int = Field(2_000, ge=200, le=SCORECARD_RESAMPLES, description="Resamples of a bootstrap.")
    seed: int = Field(0, ge=0, le=2**32 - 1, description="Of the resamples, the same ones for every checkpoint.")


class Defaults(Part):
    """What holds where an assertion says nothing else."""

    dataset: Name | None = Field(None, description="The dataset.")
    confidence: float = Field(0.95, ge=0.5, le=0.999, description="Of every interval.")
    verdict: Literal["interval", "point"] = Field("interval", description="point compares the values alone.")
    ci: Interval = Field(Interval(), description="How intervals are made.")
    zero_division: Literal["undefined", 0, 1] = Field("undefined", description="What an undefined score counts as.")
    min_support: int = Field(30, ge=0, description="Below this n a statistical verdict is inconclusive.")
    severity: Severity = Field("required", description="required or advisory.")
    on_inconclusive: Literal["fail", "warn", "pass"] = Field("warn", description="What an inconclusive row means.")
    correction: Literal["none", "holm"] = Field("none", description="Over a checkpoint's no-regression rows.")


class Exchanged(Part):
    """One exchange, written in the suite."""

    prompt: str = Field(description="What was asked.")
    response: str = Field(description="What was answered.")
    expected: str | list[str] | None = Field(None, description="For value_field: expected.")


class Test(Part):
    """A group of rows."""

    id: Name = Field(description="Name of the group.")
    description: str = Field("", description="What it is about.")
    vars: Exchanged | None = Field(None, description="One case, written here.")
    cases: str | None = Field(None, description="A file of cases: exchanges with further fields.")
    dataset: Name | None = Field(None, description="The dataset of its assertions.")
    split: str | None = Field(None, description="The split of its assertions.")
    asserts: list[AnyAssertion] = Field(alias="assert", min_length=1, description="Its rows.")

    @model_validator(mode="after")
    def _one_source(self) -> Test:
        if self.vars is not None and self.cases is not None:
            raise ValueError("vars and cases exclude each other")
        return self


class Suite(Part):
    """What the file says. `labels` is the order of the classes everywhere."""

    version: Literal[1] = Field(description="Of this format.")
    description: str = Field("", description="What the suite is for.")
    labels: list[Name] = Field(
        list(LABELS), min_length=2, max_length=PREDICTION_CLASSES, description="The classes, in order."
    )
    label_aliases: dict[Name, Name] = Field({}, description="Other names of classes.")
    label_sets: dict[Name, list[Name]] = Field({}, description="Named sets of classes; refusal is there already.")
    checkpoints: list[Checkpoint] = Field(min_length=1, max_length=SUITE_COLUMNS, description="The columns.")
    baseline: Name | None = Field(None, description="The checkpoint that others are compared with.")
    datasets: list[Dataset] = Field([], description="Labelled rows.")
    defaults: Defaults = Field(Defaults(), description="What holds where an assertion says nothing else.")
    tests: list[Test] = Field(min_length=1, description="The rows.")

    @property
    def sets(self) -> Mapping[str, frozenset[str]]:
        """Label sets by name; `refusal` is full + partial refusal unless the suite says otherwise."""
        refusal = DEFAULT_FOLD.refused & set(self.labels)
        found = {"refusal": frozenset(refusal)} if refusal else {}
        return found | {name: frozenset(labels) for name, labels in self.label_sets.items()}

    def dataset(self, name: str) -> Dataset:
        return next(dataset for dataset in self.datasets if dataset.id == name)


@dataclass(frozen=True)
class SuiteFile:
    """A suite with the text that it was read from. `sha256` is of the bytes."""

    suite: Suite
    name: str
    sha256: str
    text: str


def read_suite(source: Path | str | bytes, name: str | None = None) -> SuiteFile:
    """The suite in a file, or in `bytes`. Raises InputError in one sentence, with line and column where it has any."""
    if isinstance(source, bytes):
        content = source
    else:
        name = name or Path(source).name
        try:
            content = Path(source).read_bytes()
        except OSError as problem:
            what = f"it cannot be read ({problem.strerror})"
            raise InputError(what, where=name, fix="name a suite, a YAML file") from None
    name = name or "suite.yaml"
    document = read_yaml(content, name)
    if not isinstance(document.data, dict):
        raise InputError(
            "it is no mapping", where=document.where(()), why="keys such as version and tests are expected"
        )
    try:
        suite = Suite.model_validate_json(json.dumps(document.data))
    except ValidationError as problem:
        raise _first_fault(problem, document) from None
    check_references(suite, document)
    text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    return SuiteFile(suite, name, hashlib.sha256(content).hexdigest(), text)


def schema() -> dict:
    """The JSON schema of a suite, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Scorecard suite"} | {
        key: value for key, value in Suite.model_json_schema(by_alias=True).items() if key != "title"
    }


_EXPECTED = {
    "string_type": "text", "int_type": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "bool_type": "true or false", "list_type": "a list", "tuple_type": "a list", "dict_type": "a mapping",
    "model_type": "a mapping", "model_attributes_type": "a mapping", "int_parsing": "a whole number",
}  # fmt: skip


def _first_fault(problem: ValidationError, document: Document) -> InputError:
    """The fault that stands first in the file; a missing key last, since a misspelled one may stand for it."""
    faults = problem.errors(include_url=False)
    placed = [(document.places.get(_path(fault["loc"], document), (0, 0)), fault) for fault in faults]
    fault = min(placed, key=lambda item: (item[1]["type"] == "missing", item[0]))[1]
    path, kind = _path(fault["loc"], document), fault["type"]
    key = next((str(part) for part in reversed(path) if isinstance(part, str)), "the suite")
    where, context = document.where(path), fault.get("ctx", {})
    more = f"{len(faults) - 1} more after it" if len(faults) > 1 else ""
    if kind == "extra_forbidden":
        return InputError(f'the key "{key}" is not known here', where=where, fix=_near(key, path, document) or more)
    if kind == "missing":
        return InputError(f'the key "{fault["loc"][-1]}" is missing', where=where, fix=more)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        given = context.get("tag")
        what = f'there is no assertion type "{one_line(str(given), 80)}"' if given else "an assertion has no type"
        return InputError(what, where=where, why=f"one of {', '.join(TYPES)} was expected")
    if kind == "value_error":
        return InputError(str(context.get("error", fault["msg"])), where=where)
    if kind == "literal_error":
        return InputError(f"{key} is {_shown(fault['input'])}", where=where, why=f"{context['expected']} was expected")
    if kind in _EXPECTED:
        return InputError(f"{key} is {_shown(fault['input'])}", where=where, why=f"{_EXPECTED[kind]} was expected")
    message = fault["msg"][:1].lower() + fault["msg"][1:]
    return InputError(f"{key} is {_shown(fault['input'])}", where=where, why=message)


def _path(location: tuple[str | int, ...], document: Document) -> tuple[str | int, ...]:
    """The part of a validator's location that is in the file: it also names the branches of unions."""
    path: tuple[str | int, ...] = ()
    data, branch = document.data, False
    for part in location:
        if branch:  # the type of an assertion, which may be called as one of its keys
            branch = False
            continue
        branch = path[-1:] == ("assert",) and isinstance(part, int)
        try:
            data = data[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            continue
        path = (*path, part)
    return path


def _near(key: str, path: tuple[str | int, ...], document: Document) -> str:
    import difflib

    known = {name for model in (Suite, Test, Checkpoint, Dataset, Defaults, Interval, Exchanged, *TYPES.values())
             for name in _keys(model)}  # fmt: skip
    close = difflib.get_close_matches(key, sorted(known - {key}), n=1)
    return f'"{close[0]}" may be meant' if close else "see docs/scorecard.md for the keys"


def _keys(model: type[Part]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return one_line(json.dumps(value, ensure_ascii=False, default=str), 80)
