"""A first suite from a predictions file: thresholds that its numbers meet, for a person to tighten."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import BinaryIO

from refusal_core.labels import LABELS
from refusal_core.metrics.intervals import Rate, rate
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric
from refusal_core.metrics.scores import score
from refusal_core.runs.predictions import Predictions, read_predictions, variants_of
from refusal_core.scorecard.table import shown

MIN_SUPPORT = 30


def draft(source: Path | str | BinaryIO, name: str | None = None) -> str:
    """The text of a suite over the file. Each threshold is the lower end of today's interval, rounded down (upper, up).

    `name` is what the suite calls the file. Raises InputError as `read_predictions` does, and where no row has a true
    class.
    """
    name = name or (Path(source).name if isinstance(source, str | Path) else "predictions.jsonl")
    found = read_predictions(source, name)
    split = found.main_split
    items = found.items(split=split)
    lines = [
        "# Drafted from the numbers of one predictions file: each threshold is what its interval promises today.",
        "# Tighten what matters, delete what does not, and add the checkpoints to compare.",
        "version: 1",
        f"description: {_quoted(f'Drafted from {name}')}",
        *_labels(found),
        "checkpoints:",
        f"  - {{id: first, predictions: {_quoted(name)}}}",
        "  # - {id: candidate, predictions: candidate.jsonl}",
        "baseline: first",
        "defaults:",
        "  confidence: 0.95",
        f"  min_support: {MIN_SUPPORT}",
        "  on_inconclusive: warn",
        "tests:",
        *_quality(items, split),
        *_regressions(split),
        *_behaviour(found, split),
    ]
    return "\n".join(lines) + "\n"


def _labels(found: Predictions) -> list[str]:
    if found.labels == LABELS:
        return []
    lines = [f"labels: [{', '.join(map(_quoted, found.labels))}]"]
    if not set(found.labels) & {"full_refusal", "partial_refusal"}:
        lines.append("# label_sets: {refusal: [...]}   # which of these mean refused")
    return lines


def _quality(items: Items, split: str) -> list[str]:
    lines = ["  - id: quality", *_split(split), "    assert:"]
    lines += _metric("accuracy", items, Metric("accuracy"))
    lines += _metric("macro-f1", items, Metric("f1", average="macro"), "average: macro, ")
    for label in items.labels:
        if int((items.true == items.labels.index(label)).sum()) >= MIN_SUPPORT:
            part = f"label: {_quoted(label)}, "
            lines += _metric(f"recall-{label}", items, Metric("recall", label=label), part)
    if items.probabilities is not None:
        lines += _metric("brier", items, Metric("brier"))
        if len(items) >= 200:
            lines += _metric("ece", items, Metric("ece"), severity="advisory")
    lines.append(f'      - {{id: enough-rows, type: support, label: "*", min: {MIN_SUPPORT}, severity: advisory}}')
    return lines


def _metric(name: str, items: Items, metric: Metric, part: str = "", severity: str = "") -> list[str]:
    found = score(items, metric)
    if found.interval is None:
        return []
    threshold = _down(found) if metric.greater_is_better else _up(found)
    extra = f", severity: {severity}" if severity else ""
    keys = f"id: {_quoted(name)}, type: metric, metric: {metric.name}, {part}threshold: {threshold:g}{extra}"
    return [f"      - {{{keys}}}   # today {found}"]


def _regressions(split: str) -> list[str]:
    return [
        "  - id: no-regression",
        "    description: No worse than the baseline on the same items, by more than one point in a hundred",
        *_split(split),
        "    assert:",
        "      - {id: accuracy-change, type: no-regression, metric: accuracy, min_absolute_change: -0.01}",
        "      - {id: macro-f1-change, type: no-regression, metric: f1, average: macro, min_absolute_change: -0.01}",
    ]


def _behaviour(found: Predictions, split: str) -> list[str]:
    lines = []
    pairs = list(variants_of(found))
    variants = [variant for s, variant in pairs if variant and s == split]
    if variants:
        lines += [
            "  - id: invariance",
            f"    description: {_quoted('Variants: ' + ', '.join(variants))}",
            *_split(split),
        ]
        most = max(_up(_flips(found, split, variant)) for variant in variants)
        lines += ["    assert:", f'      - {{id: flips, type: invariance, perturbation: "*", max_flip_rate: {most:g}}}']
    for other in dict.fromkeys(s for s, variant in pairs if s != split and not variant):
        rows = found.rows(other)
        if shown(other) and (found.true[rows] >= 0).any():
            lines += [f"  - id: {_quoted('cases-' + other)}", *_split(other), "    assert:"]
            today = score(found.items(split=other), Metric("accuracy"))
            keys = f'type: equals, value_field: "true", min_pass_rate: {_down(today):g}'
            lines.append(f"      - {{id: as-labelled, {keys}}}   # today {today}")
    return lines


def _flips(found: Predictions, split: str, variant: str) -> Rate:
    """How many rows change their class under a variant."""
    before = {found.ids[row]: found.predicted[row] for row in found.rows(split)}
    after = [(found.ids[row], found.predicted[row]) for row in found.rows(split, variant)]
    pairs = [(before[name], label) for name, label in after if name in before]
    return rate(sum(a != b for a, b in pairs), len(pairs))


def _down(found: Rate) -> float:
    return math.floor(found.interval.low * 100) / 100 if found.interval else 0.0


def _up(found: Rate) -> float:
    return math.ceil(found.interval.high * 100) / 100 if found.interval else 1.0


def _split(split: str) -> list[str]:
    return [f"    split: {_quoted(split)}"] if split else []


def _quoted(text: str) -> str:
    """`text` as YAML takes it whatever it holds: JSON strings are YAML but for halves of surrogate pairs."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in plain)
