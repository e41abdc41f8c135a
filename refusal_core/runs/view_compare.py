"""Checkpoints side by side: each metric with its interval, and its difference from a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from refusal_core.errors import InputError
from refusal_core.metrics.compare import PairedDifference, paired, unpaired
from refusal_core.metrics.intervals import Rate, digits_for, format_rate
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric
from refusal_core.metrics.scores import score, score_matrix
from refusal_core.runs.model import Run, Scores
from refusal_core.runs.tables import ReportTable
from refusal_core.runs.view_classes import Evaluation, Matrix, evaluations, items_of, matrix_of

Basis = Literal["predictions", "matrix", "report", "stated"]
COMPARED: Mapping[str, Metric | None] = {
    "macro_f1": Metric("f1", average="macro"),
    "accuracy": Metric("accuracy"),
    "weighted_f1": Metric("f1", average="weighted"),
    "macro_precision": Metric("precision", average="macro"),
    "macro_recall": Metric("recall", average="macro"),
    "balanced_accuracy": Metric("balanced_accuracy"),
    "f1": None,
    "precision": None,
    "recall": None,
    "mcc": Metric("mcc"),
    "log_loss": Metric("log_loss"),
    "ece": Metric("ece"),
    "loss": None,
}
"""House name to what is computed of predictions; None for what is only ever stated."""
_OFFERED_ONLY_IF_STATED = ("balanced_accuracy", "mcc", "f1", "precision", "recall", "loss")
_LOWER = ("loss", "log_loss", "ece", "brier", "perplexity")
MEASURED = 60  # checkpoints with intervals; the others have values


@dataclass(frozen=True, eq=False)
class Candidate:
    """A checkpoint, or a run that has an evaluation but no checkpoint, with all that is known of it."""

    run: str
    checkpoint: str
    step: int | None
    name: str = ""
    """For a list: without the run where there is one only."""
    items: Items | None = None
    items_file: str = ""
    matrix: Matrix | None = None
    report: ReportTable | None = None
    stated: tuple[Scores, ...] = ()

    @property
    def key(self) -> str:
        """Stable, for links."""
        return f"{self.run}|{self.checkpoint}"


@dataclass(frozen=True, eq=False)
class Entry:
    """One metric of one candidate. `value` may be NaN or infinite, as stated; None where nothing states it."""

    value: float | None
    rate: Rate | None
    basis: Basis | None
    difference: float | None = None
    """From the baseline, positive is better also where lower values are; None for the baseline itself."""
    compared: PairedDifference | None = None
    """With an interval, where both sides have predictions over shared ids, or both a matrix."""
    why_not: str = ""
    """Why there is no interval on the difference."""

    @property
    def verdict(self) -> str:
        """ "better", "worse", "not distinguishable" or "" where nothing can be said."""
        interval = self.compared and self.compared.interval
        if not interval:
            return ""
        return "better" if interval.low > 0 else "worse" if interval.high < 0 else "not distinguishable"


@dataclass(frozen=True)
class SideBySide:
    """One metric of all candidates against one of them."""

    metric: str
    baseline: Candidate
    candidates: tuple[Candidate, ...]
    entries: tuple[Entry, ...] = field(default=())

    @property
    def best(self) -> int | None:
        """Place of the candidate with the best finite value."""
        sign = -1 if self.metric in _LOWER else 1
        known = [
            (sign * e.value, -k) for k, e in enumerate(self.entries) if e.value is not None and math.isfinite(e.value)
        ]
        return -max(known)[1] if known else None


def candidates(runs: Sequence[Run]) -> tuple[Candidate, ...]:
    """Every checkpoint in order; a run without checkpoints stands for itself when something evaluates it."""
    found, alone = [], len(runs) == 1
    for run in runs:
        by_part: dict[str, list[Evaluation]] = {}
        for one in evaluations([run]):
            by_part.setdefault(one.checkpoint, []).append(one)
        for checkpoint in run.checkpoints:
            stated = (checkpoint.metrics,) if checkpoint.metrics else ()
            name = checkpoint.name if alone else f"{run.name} {checkpoint.name}"
            one = Candidate(run.name, checkpoint.name, checkpoint.step, name, stated=stated)
            found.append(_completed(one, by_part.get(checkpoint.name, ())))
        whole = by_part.get("", [])
        if not run.checkpoints and (whole or run.scores):
            found.append(_completed(Candidate(run.name, "", None, run.name, stated=run.scores), whole))
    return tuple(found)


def offered(found: Sequence[Candidate]) -> tuple[str, ...]:
    """The metrics that at least one candidate has, in the order of COMPARED."""
    return tuple(
        name
        for name in COMPARED
        if any(_stated(one, name) is not None for one in found)
        or (name not in _OFFERED_ONLY_IF_STATED and any(_can_compute(one, COMPARED[name]) for one in found))
    )


def side_by_side(found: Sequence[Candidate], metric: str, baseline: str, *, seed: int = 0) -> SideBySide:
    """All candidates by one metric (a house name) against the one whose key is `baseline`.

    Differences are paired by item where both have predictions over shared ids; of two matrices they are as of separate
    items; else they have no interval. Raises InputError for a baseline that is not there.
    """
    base = next((one for one in found if one.key == baseline), None)
    if base is None:
        raise InputError("the baseline is not among the checkpoints", where="baseline", fix="choose another one")
    of_base = _entry(base, metric, seed)
    entries = []
    for place, one in enumerate(found):
        entry = of_base if one is base else _entry(one, metric, seed, interval=place < MEASURED)
        entries.append(entry if one is base else _against(entry, one, of_base, base, metric, seed, place < MEASURED))
    return SideBySide(metric, base, tuple(found), tuple(entries))


def differing(runs: Sequence[Run]) -> tuple[tuple[str, tuple[object, ...]], ...]:
    """Settings that are not the same in all runs: (name, one value a run, None where it is not stated)."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    rows = ((name, tuple(run.settings.get(name) for run in runs)) for name in names)
    return tuple(row for row in rows if len({repr(value) for value in row[1]}) > 1)


def _completed(one: Candidate, found: Sequence[Evaluation]) -> Candidate:
    """With its predictions of the main split, its first matrix and its first report."""
    items, items_file = None, ""
    for each in found:
        if each.source == "predictions" and not each.variant and items is None:
            main = each.predictions.main_split if _has_main(each) else each.split
            if each.split == main:
                items, items_file = _items(each), each.file
    matrix = next((m for m in (matrix_of(each) for each in found if each.source == "matrix") if m), None)
    report = next((each.table for each in found if isinstance(each.table, ReportTable)), None)
    return replace(one, items=items, items_file=items_file, matrix=matrix, report=report)


def _has_main(one: Evaluation) -> bool:
    try:
        return bool(one.predictions.main_split) or True
    except InputError:
        return False


def _items(one: Evaluation) -> Items | None:
    try:
        return items_of(one)
    except InputError:
        return None  # an id twice: the page of the evaluation says so


def _can_compute(one: Candidate, metric: Metric | None) -> bool:
    if metric is None:
        return False
    if one.items is not None:
        return one.items.probabilities is not None if metric.needs_probabilities else True
    return one.matrix is not None and not metric.needs_probabilities


def _entry(one: Candidate, name: str, seed: int, *, interval: bool = True) -> Entry:
    metric = COMPARED.get(name)
    if metric is not None and _can_compute(one, metric):
        options = {"seed": seed} if interval else {"seed": seed, "resamples": 50}
        if one.items is not None:
            rate, basis = score(one.items, metric, **options), "predictions"
        else:
            rate, basis = score_matrix(one.matrix.counts, one.matrix.labels, metric, **options), "matrix"
        return Entry(rate.value, rate if interval else Rate(rate.value, rate.n, None), basis)
    if (value := _reported(one.report, name)) is not None:
        return Entry(value, None, "report")
    if (value := _stated(one, name)) is not None:
        return Entry(value, None, "stated")
    return Entry(None, None, None)


def _against(
    entry: Entry, one: Candidate, of_base: Entry, base: Candidate, name: str, seed: int, measured: bool
) -> Entry:
    if entry.value is None or of_base.value is None:
        return entry
    sign = -1 if name in _LOWER else 1
    plain = sign * (entry.value - of_base.value)
    difference = plain if math.isfinite(plain) else None
    compared, why = None, ""
    metric = COMPARED.get(name)
    try:
        if not measured:
            why = f"only the first {MEASURED} checkpoints have intervals"
        elif "predictions" == entry.basis == of_base.basis and set(one.items.ids) & set(base.items.ids):
            compared = paired(one.items, base.items, metric, seed=seed)
        elif "predictions" == entry.basis == of_base.basis:
            why = "the two share no item"
        elif "matrix" == entry.basis == of_base.basis and one.matrix.labels == base.matrix.labels:
            compared = unpaired(one.matrix.counts, base.matrix.counts, one.matrix.labels, metric, seed=seed)
        else:
            why = "no predictions on both sides"
    except InputError as error:
        why = str(error)
    if compared is not None and compared.value is not None:
        difference = compared.value
    return Entry(entry.value, entry.rate, entry.basis, difference, compared, why)


def _reported(report: ReportTable | None, name: str) -> float | None:
    if report is None:
        return None
    if name == "accuracy":
        return report.accuracy
    average, _, score_name = name.partition("_")
    row = report.average(average) if average in ("macro", "weighted", "micro") and score_name else None
    return getattr(row, score_name, None) if row else None


def _stated(one: Candidate, name: str) -> float | None:
    for scores in one.stated:
        for split in ("test", "eval", None):
            if found := scores.find(name, split=split):
                return float(np.float64(found.value))
    return None


def flips(found: SideBySide) -> Iterator[tuple[Candidate, PairedDifference]]:
    """Candidates whose items are matched with the baseline's."""
    for one, entry in zip(found.candidates, found.entries, strict=True):
        if entry.compared is not None and entry.compared.paired:
            yield one, entry.compared


def value_words(entry: Entry) -> str:
    """A metric of a checkpoint in the house form; "not a number" and "infinite" as stated, "–" for none."""
    if entry.value is None:
        return "–"
    if not math.isfinite(entry.value):
        return "not a number" if math.isnan(entry.value) else "infinite"
    return format_rate(entry.rate) if entry.rate else f"{entry.value:.4f}"


def difference_words(entry: Entry) -> str:
    """The difference from the baseline with its interval; "–" for none."""
    if entry.difference is None:
        return "–"
    interval = entry.compared.interval if entry.compared else None
    if interval is None:
        return f"{entry.difference:+.4f}"
    digits = digits_for(interval.width)
    return f"{entry.difference:+.{digits}f} ({interval.low:+.{digits}f} to {interval.high:+.{digits}f})"
