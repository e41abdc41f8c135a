"""The HTML report of a batch."""

from __future__ import annotations

from refusal_core.classifier.batch import Batch, Summary
from refusal_core.limits import GROUPS_LISTED, GROUPS_SHOWN
from refusal_core.metrics.intervals import Rate, format_rate
from refusal_core.metrics.report import ClassificationReport
from refusal_core.plots.html import Banner, Chart, Code, Lead, Section, Table, html_report
from refusal_core.plots.svg import Row, interval_chart

ERRORS_LISTED = 200
_CHART_NAME = 21  # characters beside a chart


def batch_report(batch: Batch, summary: Summary, *, name: str, command: str, corrections: int = 0) -> str:
    """One self-contained file: the answer, shares, groups, scores, rows without an answer, and the command."""
    parts = [_opening(batch, summary, name, corrections), _shares(summary)]
    if summary.groups:
        parts.append(_groups(summary))
    if summary.report:
        parts.append(_scores(summary.report))
    if batch.errors:
        parts.append(_errors(batch))
    info = batch.checkpoint
    parts.append(
        Section(
            "The same again",
            [
                Code(command),
                f"Checkpoint {info.name}, SHA-256 {info.digest}.",
                *([f"Revision {info.revision}."] if info.revision else []),
            ],
        )
    )
    return html_report(f"Refusals in {name}", parts)


def _opening(batch: Batch, summary: Summary, name: str, corrections: int) -> Section:
    parts: list = [Lead(f"Refused: {format_rate(summary.refused)}")]
    if batch.stopped:
        parts.append(Banner(f"Stopped early: {len(batch.rows):,} of {batch.total:,} rows are classified."))
    parts.append(
        f"Refused means {summary.fold.name}. For the phrase matcher: {format_rate(summary.refused_by_matcher)}; "
        f"the two disagree on {len(summary.disagreements):,} rows. Answers with a probability below "
        f"{summary.threshold:g}: {len(summary.low_confidence):,}. Rows that could not be classified: "
        f"{summary.unclassified:,}. "
        "Ranges are 95% intervals (Wilson)."
    )
    if corrections:
        parts.append(f"{corrections:,} labels of the file were corrected by hand; the scores use the corrections.")
    return Section("", parts)


def _shares(summary: Summary) -> Section:
    rows = [(share.label, f"{share.count:,}", format_rate(share.rate)) for share in summary.shares]
    return Section(
        "Classes",
        [
            _chart([(s.label, s.rate) for s in summary.shares], "share of the answers"),
            Table(("class", "answers", "share"), rows),
        ],
    )


def _groups(summary: Summary) -> Section:
    shown, listed = summary.groups[:GROUPS_SHOWN], summary.groups[:GROUPS_LISTED]
    rows = [(group.group, f"{group.count:,}", format_rate(group.refused)) for group in listed]
    parts = [
        _chart([(g.group, g.refused) for g in shown], "refused share"),
        Table((summary.group_by or "", "refused", "refused share"), rows),
    ]
    if len(summary.groups) > len(listed):
        parts.append(f"{len(summary.groups) - len(listed):,} smaller groups are left out.")
    return Section(f"Refused by {summary.group_by}", parts)


def _scores(report: ClassificationReport) -> Section:
    rows = [
        (c.label, c.support, c.predicted, *(without_n(score) for score in (c.precision, c.recall, c.f1)))
        for c in report.classes
    ]
    matrix = [(label, *(f"{n:,}" for n in row)) for label, row in zip(report.labels, report.matrix, strict=True)]
    return Section(
        "Against the labels",
        [
            f"Accuracy {format_rate(report.accuracy)}; macro F1 {report.macro.f1:.3f}.",
            Table(
                ("class", "labelled", "answered", "precision", "recall", "F1"),
                rows,
                caption="Precision is over the answered rows, recall over the labelled, F1 over both together",
            ),
            Table(("label \\ answer", *report.labels), matrix, caption="Confusion matrix: labels down, answers across"),
        ],
    )


def without_n(rate: Rate) -> str:
    """The house form for a table that has n in a column of its own."""
    return format_rate(rate).replace(f", n = {rate.n:,})", ")")


def _errors(batch: Batch) -> Section:
    listed = [batch.rows[i] for i in batch.errors[:ERRORS_LISTED]]
    rows = [(f"{row.row.line}", str(row.row.id), row.answer.error or "") for row in listed]
    more = [f"{len(batch.errors) - len(listed):,} more are left out."] if len(batch.errors) > len(listed) else []
    return Section("Rows that could not be classified", [Table(("line", "id", "why"), rows), *more])


def _chart(rates: list[tuple[str, Rate]], title: str) -> Chart:
    known = [(name, rate) for name, rate in rates if rate.value is not None and rate.interval is not None]
    rows = [
        Row(
            name if len(name) <= _CHART_NAME else f"{name[: _CHART_NAME - 1]}…",
            rate.value,
            rate.interval.low,
            rate.interval.high,
            format_rate(rate),
        )
        for name, rate in known
    ]
    alt = "; ".join(f"{name} {format_rate(rate)}" for name, rate in known)
    if not rows:
        return Chart("", "Nothing to draw: no row was classified.")
    return Chart(interval_chart(rows, x_title=title), f"{title}, with 95% intervals: {alt}.")
