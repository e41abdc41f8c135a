"""What a suite names must be there: classes, label sets, datasets, the baseline; and no name twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from refusal_core.errors import InputError
from refusal_core.scorecard.yaml_in import Document, Path

if TYPE_CHECKING:
    from refusal_core.scorecard.assertions import Assertion
    from refusal_core.scorecard.suite import Suite

_RESERVED = ("accuracy", "macro avg", "micro avg", "weighted avg", "samples avg", "*")


def check_references(suite: Suite, document: Document) -> None:
    """Raise InputError, with line and column, for the first name that leads nowhere or stands twice."""
    labels = set(suite.labels)
    _unique(suite.labels, "class", ("labels",), document)
    for at, label in enumerate(suite.labels):
        if label in _RESERVED:
            what = f'a class cannot be called "{label}"'
            why = "scikit-learn's reports use that word for an average" if label != "*" else "it stands for every class"
            raise InputError(what, where=document.where(("labels", at)), why=why)
    for alias, label in suite.label_aliases.items():
        _known(label, labels, "class", ("label_aliases", alias), document)
        if alias in labels:
            what = f'"{alias}" is a class and cannot be an alias'
            raise InputError(what, where=document.where(("label_aliases", alias)))
    for name, members in suite.label_sets.items():
        for at, label in enumerate(members):
            _known(label, labels, "class", ("label_sets", name, at), document)
    _unique([c.id for c in suite.checkpoints], "checkpoint", ("checkpoints",), document, "id")
    _unique([d.id for d in suite.datasets], "dataset", ("datasets",), document, "id")
    _unique([t.id for t in suite.tests], "test", ("tests",), document, "id")
    if suite.baseline is not None:
        _known(suite.baseline, {c.id for c in suite.checkpoints}, "checkpoint", ("baseline",), document)
    datasets = {d.id for d in suite.datasets}
    _known(suite.defaults.dataset, datasets, "dataset", ("defaults", "dataset"), document)
    for at, test in enumerate(suite.tests):
        _known(test.dataset, datasets, "dataset", ("tests", at, "dataset"), document)
        given = [a.id for a in test.asserts if a.id is not None]
        if len(set(given)) < len(given):
            twice = next(name for name in given if given.count(name) > 1)
            place = max(k for k, a in enumerate(test.asserts) if a.id == twice)
            where = document.where(("tests", at, "assert", place, "id"))
            raise InputError(f'two assertions of the test "{test.id}" are called "{twice}"', where=where)
        for k, assertion in enumerate(test.asserts):
            _check_assertion(assertion, suite, labels, datasets, ("tests", at, "assert", k), document)


def _check_assertion(
    assertion: Assertion, suite: Suite, labels: set[str], datasets: set[str], path: Path, document: Document
) -> None:
    _known(assertion.dataset, datasets, "dataset", (*path, "dataset"), document)
    for label in assertion.labels_named:
        _known(label, labels, "class", (*path, _key_of(label, assertion)), document)
    for name in assertion.sets_named:
        if name not in suite.sets:
            known = ", ".join(suite.sets) or "none"
            where = document.where((*path, "label_set"))
            why = f"those of the suite are: {known}"
            raise InputError(f'there is no label set "{name}"', where=where, why=why, fix="name it in label_sets")


def _key_of(label: str, assertion: Assertion) -> str:
    """The key of `assertion` that says `label`, for its place."""
    keys = ("label", "true", "predicted", "value")
    return next((key for key in keys if getattr(assertion, key, None) == label), "type")


def _known(name: str | None, known: set[str], what: str, path: Path, document: Document) -> None:
    if name is not None and name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise InputError(
            f'there is no {what} "{name}"', where=document.where(path), why=f"those of the suite are: {listed}"
        )


def _unique(names: Iterable[str], what: str, path: Path, document: Document, key: str | None = None) -> None:
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name in seen:
            place = (*path, at, key) if key else (*path, at)
            raise InputError(f'two of the {what}s are called "{name}"', where=document.where(place))
        seen.add(name)
