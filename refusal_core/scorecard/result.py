"""The result of a run of a suite: rows with verdict and evidence, a verdict for each checkpoint, and one conclusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from refusal_core.errors import one_line
from refusal_core.exchanges import Exchange
from refusal_core.metrics.intervals import Interval, Rate
from refusal_core.scorecard.verdicts import VERDICTS, Verdict

SCHEMA = "refusal-scorecard/1"
SuiteVerdict = Literal["pass", "fail", "error", "inconclusive", "empty"]
PASSED, NOT_COMPUTED, WRONG_INPUT, NOTHING_RAN, FAILED, UNDECIDED = 0, 1, 2, 5, 100, 101

UNTIL_SUPPORT = "until the support that is asked for"


@dataclass(frozen=True)
class Example:
    """An item behind a row. `exchange` where its texts are known; it is not written to JSON."""

    id: str
    predicted: str | None
    expected: str | None = None
    probability: float | None = None
    exchange: Exchange | None = field(default=None, repr=False)

    def as_json(self) -> dict:
        return {
            "id": self.id, "predicted": self.predicted, "expected": self.expected, "probability": self.probability,
        }  # fmt: skip


@dataclass(frozen=True)
class Evidence:
    """What a row's verdict rests on. Lists are bounded; `*_total` counts all."""

    failing: tuple[Example, ...] = ()
    failing_total: int = 0
    worse: tuple[str, ...] = ()
    """Ids that the baseline has right (or not in the class) and the checkpoint wrong (or in the class)."""
    worse_total: int = 0
    better: tuple[str, ...] = ()
    better_total: int = 0
    left_out: int = 0
    """Items without a partner in the baseline, or without an answer."""
    p: float | None = None
    """McNemar's exact two-sided p, for information."""
    candidate: Rate | None = None
    baseline: Rate | None = None
    raw: Rate | None = None
    corrected: Rate | None = None
    more_needed: int | None = None
    """Further items that would decide an inconclusive row under `assumption`."""
    assumption: str = ""
    """On what `more_needed` rests (UNTIL_SUPPORT for the rows that are asked for), or why there is none."""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Only what is there."""
        given: dict[str, Any] = {}
        if self.failing_total:
            given |= {"failing": [e.as_json() for e in self.failing], "failing_total": self.failing_total}
        if self.candidate is not None or self.worse_total or self.better_total:
            given |= {"worse": list(self.worse), "worse_total": self.worse_total}
            given |= {"better": list(self.better), "better_total": self.better_total}
        for name in ("left_out", "p", "more_needed", "assumption"):
            if value := getattr(self, name):
                given[name] = value
        for name in ("candidate", "baseline", "raw", "corrected"):
            if (rate := getattr(self, name)) is not None:
                given[name] = rate_json(rate)
        return given | ({"notes": list(self.notes)} if self.notes else {})


@dataclass(frozen=True)
class Row:
    """One assertion, of one class and slice where it was unfolded, on one checkpoint."""

    test: str
    assertion: str
    type: str
    checkpoint: str
    verdict: Verdict
    severity: str
    message: str
    label: str | None = None
    slice: Mapping[str, str] | None = None
    subject: str = ""
    """What is measured, in words: "recall of full_refusal"."""
    value: float | None = None
    interval: Interval | None = None
    n: int | None = None
    threshold: float | None = None
    margin: float | None = None
    comparison: str | None = None
    """">=" or "<=": how the value must lie to `threshold` or `margin`."""
    reason: str = ""
    """Why the verdict is neither pass nor fail."""
    description: str = ""
    evidence: Evidence = Evidence()

    @property
    def key(self) -> tuple:
        """The row of the matrix: the same for every checkpoint."""
        return self.test, self.assertion, self.label, tuple(sorted((self.slice or {}).items()))

    @property
    def name(self) -> str:
        """The assertion with the class or slice in brackets where it was unfolded."""
        inner = [self.label] if self.label is not None else []
        inner += [v if name == "perturbation" else f"{name}={v}" for name, v in (self.slice or {}).items()]
        return f"{self.assertion}[{', '.join(inner)}]" if inner else self.assertion

    def as_json(self) -> dict[str, Any]:
        unfolded = {"label": self.label} if self.label is not None else {}
        unfolded |= {"slice": dict(self.slice)} if self.slice else {}
        return {
            "test": self.test, "assertion": self.assertion, "type": self.type, "checkpoint": self.checkpoint,
            **unfolded, "verdict": self.verdict, "severity": self.severity, "value": self.value,
            "interval": interval_json(self.interval), "n": self.n, "threshold": self.threshold, "margin": self.margin,
            "comparison": self.comparison, "subject": self.subject, "message": self.message, "reason": self.reason,
            "evidence": self.evidence.as_json(),
        }  # fmt: skip


@dataclass(frozen=True)
class ColumnResult:
    """A checkpoint of the suite. `error` where it could not be loaded; its rows are errors then."""

    id: str
    kind: Literal["checkpoint", "responses"]
    digest: str | None
    verdict: SuiteVerdict
    counts: Mapping[str, int]
    gate: bool = True
    error: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scorecard:
    """A finished run. Rows stand in the order of the suite, the checkpoints of one row beside each other."""

    suite: str
    suite_sha256: str
    description: str
    data_sha256: str
    """Over the names and digests of all files that were read."""
    checkpoints: tuple[ColumnResult, ...]
    baseline: str | None
    rows: tuple[Row, ...]
    counts: Mapping[str, int]
    exit_code: int
    sentence: str
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def of(self, checkpoint: str) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.checkpoint == checkpoint)

    def matrix(self) -> list[tuple[tuple, dict[str, Row]]]:
        """Rows of the matrix in order: the key, and the row of each checkpoint that has one."""
        found: dict[tuple, dict[str, Row]] = {}
        for row in self.rows:
            found.setdefault(row.key, {})[row.checkpoint] = row
        return list(found.items())

    def as_json(self) -> dict[str, Any]:
        """The contents of `scorecard.json`. The same suite, data and seed give the same bytes."""
        return {
            "schema": SCHEMA,
            "suite": {"name": self.suite, "sha256": self.suite_sha256, "description": self.description},
            "data_sha256": self.data_sha256,
            "checkpoints": [
                {"id": c.id, "kind": c.kind, "digest": c.digest, "verdict": c.verdict, "gate": c.gate,
                 "counts": dict(c.counts), "error": c.error, "notes": list(c.notes)}
                for c in self.checkpoints
            ],
            "baseline": self.baseline,
            "rows": [row.as_json() for row in self.rows],
            "counts": dict(self.counts),
            "exit_code": self.exit_code,
            "sentence": self.sentence,
            "settings": dict(self.settings),
            "notes": list(self.notes),
        }  # fmt: skip


@dataclass(frozen=True)
class Conclusion:
    """What all rows say together."""

    verdicts: Mapping[str, SuiteVerdict]
    counts: Mapping[str, int]
    exit_code: int
    sentence: str


def conclude(
    rows: Sequence[Row],
    columns: Mapping[str, bool],
    *,
    may_be_empty: Collection[str] = (),
    on_inconclusive: str = "warn",
    fail_code: int = FAILED,
) -> Conclusion:
    """The verdict of each column (id to whether it gates), the counts, the exit code and the line that is printed.

    A failed required row outranks an error, that a gated column of which nothing required ran (exit 5, no pass), and
    that an undecided row. `may_be_empty` are columns that need no row of their own, such as the baseline's.
    """
    verdicts = {
        column: _of_column([row for row in rows if row.checkpoint == column], on_inconclusive) for column in columns
    }
    gated = [verdict for column, verdict in verdicts.items() if columns[column]]
    missing = [c for c, verdict in verdicts.items() if verdict == "empty" and columns[c] and c not in may_be_empty]
    code = next(
        (number for applies, number in (
            ("fail" in gated, fail_code), ("error" in gated, NOT_COMPUTED), (bool(missing), NOTHING_RAN),
            ("inconclusive" in gated, UNDECIDED), ("pass" in gated, PASSED),
        ) if applies),
        NOTHING_RAN,
    )  # fmt: skip
    counts = count(rows)
    return Conclusion(verdicts, counts, code, _sentence(code, counts, verdicts, columns, missing))


def _of_column(rows: Sequence[Row], on_inconclusive: str) -> SuiteVerdict:
    ran = [row for row in rows if row.verdict != "not run"]
    required = [row.verdict for row in ran if row.severity == "required"]
    if not ran or (not required and any(row.severity == "required" for row in rows)):
        return "empty"
    if all(row.verdict == "error" for row in ran):  # advisory ones alone measure nothing either
        return "error"
    for verdict in ("fail", "error"):
        if verdict in required:
            return verdict
    return "inconclusive" if "inconclusive" in required and on_inconclusive == "fail" else "pass"


def _sentence(
    code: int,
    counts: Mapping[str, int],
    verdicts: Mapping[str, str],
    columns: Mapping[str, bool],
    missing: Sequence[str],
) -> str:
    ran = sum(number for verdict, number in counts.items() if verdict != "not run")
    listed = ", ".join(f"{number:,} {verdict}" for verdict, number in counts.items() if number)

    def named(verdict: str) -> str:
        return ", ".join(one_line(c) for c, found in verdicts.items() if found == verdict and columns[c])

    word = {
        PASSED: f"PASS: {named('pass')}",
        NOTHING_RAN: "NOTHING RAN: no required assertion was evaluated"
        + (f" for {', '.join(map(one_line, missing))}" if "pass" in verdicts.values() else ""),
        NOT_COMPUTED: f"ERROR: {named('error')}",
        UNDECIDED: f"INCONCLUSIVE: {named('inconclusive')}",
    }
    opening = f"FAIL: {named('fail')}" if "fail" in _gated(verdicts, columns) else word[code]
    return f"{opening} ({ran:,} of {sum(counts.values()):,} rows ran: {listed or 'none'}; exit {code})"


def _gated(verdicts: Mapping[str, str], columns: Mapping[str, bool]) -> list[str]:
    return [verdict for column, verdict in verdicts.items() if columns[column]]


def count(rows: Sequence[Row]) -> dict[str, int]:
    """Verdict to number of rows, every verdict there."""
    found = Counter(row.verdict for row in rows)
    return {verdict: found[verdict] for verdict in VERDICTS}


def interval_json(interval: Interval | None) -> dict | None:
    if interval is None:
        return None
    return {"low": interval.low, "high": interval.high, "level": interval.level, "method": interval.method}


def rate_json(rate: Rate) -> dict:
    return {"value": rate.value, "n": rate.n, "interval": interval_json(rate.interval)}


__all__ = ["Conclusion", "ColumnResult", "Evidence", "Example", "Row", "Scorecard", "conclude"]
