"""The run folder that ships with the starter: what its checkpoints answer, and figures of rows that may not ship.

`checkpoint-N/predictions.jsonl` holds the corpus's held-out and development rows, the held-out ones under each
perturbation and with one text left out, and the cases. `figures.json` holds counts of the rest: the training rows by
source, and confusion matrices of public rows by source.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from refusal_core.classifier.matcher import match
from refusal_core.classifier.predict import Classifier
from refusal_core.classifier.result import Classification
from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job
from refusal_core.labels import LABELS
from refusal_core.metrics.items import Items
from refusal_core.perturb import PERTURBATIONS, perturb
from refusal_core.reports import to_json
from refusal_core.training.data import Parts
from refusal_core.training.starter import case_rows, corpus_rows

TEST, DEVELOPMENT, CASES = "test", "development", "cases"
PROMPT_ONLY, RESPONSE_ONLY = "test, prompt only", "test, response only"
NOTHING = "…"  # stands for a response: an empty one is not classified
FIGURES = "figures.json"
_DIGITS = 5


@dataclass(frozen=True)
class Row:
    """One line of predictions.jsonl; `probabilities` in the order of LABELS."""

    id: str
    label: str
    true: str
    probabilities: tuple[float, ...]
    split: str
    variant: str = ""
    group: str | None = None

    def as_json(self) -> str:
        row = {"id": self.id, "label": self.label, "true": self.true}
        row["probabilities"] = dict(zip(LABELS, self.probabilities, strict=True))
        row["split"] = self.split
        extra = {"variant": self.variant or None, "group": self.group}
        return to_json({**row, **{key: value for key, value in extra.items() if value}})


def parts_of_a_checkpoint() -> dict[tuple[str, str], list[Exchange]]:
    """(split, variant) to its rows, in the order of the file."""
    held_out = list(corpus_rows("heldout").exchanges)
    parts = {(TEST, ""): held_out, (DEVELOPMENT, ""): list(corpus_rows("development").exchanges)}
    parts[CASES, ""] = list(case_rows())
    for name in PERTURBATIONS:
        parts[TEST, name] = [perturb(row, name) for row in held_out]
    parts[PROMPT_ONLY, ""] = [replace(row, response=NOTHING) for row in held_out]
    parts[RESPONSE_ONLY, ""] = [replace(row, prompt="") for row in held_out]
    return parts


def predict_parts(
    classifier: Classifier, *, splits: Sequence[str] = (), variants: bool = True, job: Job | None = None
) -> list[Row]:
    """The rows of one checkpoint's file; `splits` leaves the others out, `variants` False the perturbed rows."""
    parts = {
        key: rows
        for key, rows in parts_of_a_checkpoint().items()
        if (not splits or key[0] in splits) and (variants or not key[1])
    }
    answers = iter(_answers(classifier, [row for rows in parts.values() for row in rows], job))
    found = []
    for (split, variant), rows in parts.items():
        for row in rows:
            answer, group = next(answers), row.extra.get("pair")
            numbers = tuple(round(answer.probabilities[label], _DIGITS) for label in LABELS)
            found.append(
                Row(str(row.id), answer.label, str(row.label), numbers, split, variant, str(group) if group else None)
            )
    return found


def _answers(classifier: Classifier, rows: Sequence[Exchange], job: Job | None) -> list[Classification]:
    """One for each row; rows that are the same tokens to the model are computed once."""
    pairs = classifier.encode(rows).pairs
    first: dict[tuple[int, ...], int] = {}
    for at in range(len(rows)):
        first.setdefault(tuple(pairs[at].ids), at)
    answers = dict(zip(first, classifier.predict([rows[at] for at in first.values()], job=job), strict=True))
    return [answers[tuple(pairs[at].ids)] for at in range(len(rows))]


def write_rows(rows: Sequence[Row], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(row.as_json() + "\n" for row in rows), encoding="utf-8")


def read_rows(path: Path) -> list[Row]:
    """The rows that `write_rows` wrote."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        numbers = tuple(row["probabilities"][label] for label in LABELS)
        found.append(
            Row(row["id"], row["label"], row["true"], numbers, row["split"], row.get("variant", ""), row.get("group"))
        )
    return found


def of(rows: Sequence[Row], split: str, variant: str = "") -> list[Row]:
    return [row for row in rows if (row.split, row.variant) == (split, variant)]


def items(rows: Sequence[Row]) -> Items:
    """The rows as labelled predictions, with minimal pairs as clusters."""
    numbers: dict[str, int] = {}
    return Items(
        labels=LABELS,
        ids=tuple(row.id for row in rows),
        true=np.array([LABELS.index(row.true) for row in rows]),
        predicted=np.array([LABELS.index(row.label) for row in rows]),
        probabilities=np.array([row.probabilities for row in rows]),
        groups=np.array([numbers.setdefault(row.group or row.id, len(numbers)) for row in rows]),
    )


def figures(parts: Parts, classifier: Classifier, complaints: Sequence[Exchange]) -> dict[str, Any]:
    """What of figures.json comes from rows that may not ship: counts only, no text and no id of a public row."""
    public = [row for row in parts.validation.exchanges if row.extra.get("source") != "project corpus"]
    answers = classifier.predict(public)
    judged = zip(complaints, classifier.predict(complaints), strict=True)
    return {
        "training": _training(parts),
        "left_out": parts.train.left_out,
        "validation": matrices(public, [str(answer.label) for answer in answers]),
        "validation_matcher": matrices(public, [match(row.response).label for row in public]),
        "complaints": [
            {
                "kind": str(row.extra["kind"]),
                "true": row.label,
                "label": answer.label,
                "matcher": match(row.response).label,
            }
            for row, answer in judged
        ],
    }


def _training(parts: Parts) -> list[dict[str, Any]]:
    """By source: licences, distinct rows of each class, and how often a row is given."""
    counts: dict[str, Counter] = defaultdict(Counter)
    licences: dict[str, set[str]] = defaultdict(set)
    given: Counter[str] = Counter()
    seen: set[tuple] = set()
    for row in parts.train.exchanges:
        source = str(row.extra.get("source", "not stated"))
        given[source] += 1
        if (key := (row.id, row.prompt, row.response)) not in seen:
            seen.add(key)
            counts[source][str(row.label)] += 1
            licences[source].add(str(row.extra.get("license", "not stated")))
    return [
        {
            "source": source,
            "licences": sorted(licences[source]),
            "rows": {label: counts[source][label] for label in LABELS},
            "given": round(given[source] / sum(counts[source].values()), 3),
        }
        for source in sorted(counts, key=str.lower)
    ]


def matrices(rows: Sequence[Exchange], predicted: Sequence[str]) -> dict[str, list[list[int]]]:
    """Confusion matrix (rows true, columns predicted) by source."""
    found: dict[str, np.ndarray] = {}
    for row, label in zip(rows, predicted, strict=True):
        matrix = found.setdefault(str(row.extra["source"]), np.zeros((len(LABELS), len(LABELS)), dtype=int))
        matrix[LABELS.index(str(row.label)), LABELS.index(label)] += 1
    return {source: found[source].tolist() for source in sorted(found, key=str.lower)}
