"""The HTML report of a scorecard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from refusal_core.metrics.intervals import format_rate
from refusal_core.plots.html import Banner, Chart, Code, Lead, Section, Table, html_report
from refusal_core.plots.svg import Row as ChartRow
from refusal_core.plots.svg import interval_chart
from refusal_core.scorecard.report import assumptions, cell_text, conditions, more_items
from refusal_core.scorecard.result import ColumnResult, Row, Scorecard
from refusal_core.scorecard.verdicts import VERDICTS

COLUMNS_A_TABLE = 3
DETAILS = 200
_CHART_ROWS, _CHART_NAME = 12, 19


def scorecard_report(scorecard: Scorecard, *, command: str) -> str:
    """One self-contained file: the conclusion, the matrix, what failed or is undecided with its evidence."""
    sections = [_opening(scorecard), *_matrix(scorecard)]
    for verdict, heading in (("fail", "Failed"), ("error", "Could not be computed"), ("inconclusive", "Undecided")):
        rows = [row for row in scorecard.rows if row.verdict == verdict]
        if rows:
            sections.append(_details(heading, rows))
    sections.append(_again(scorecard, command))
    return html_report(f"Scorecard: {scorecard.description or scorecard.suite}", sections)


def _opening(scorecard: Scorecard) -> Section:
    settings = scorecard.settings
    parts: list = [Lead(scorecard.sentence)]
    parts.append(
        f"A row passes when its whole {settings['confidence']:.0%} interval meets the bound, fails when none of it "
        "does, and is undecided between."
        if settings["verdict"] == "interval"
        else "Values are compared with their bounds as they are, without regard to their intervals."
    )
    if scorecard.baseline:
        parts.append(f"Changes are against {scorecard.baseline}, item by item; of a metric, positive is better.")
    parts += [Banner(text) for text in (*scorecard.notes, *assumptions(scorecard))]
    parts.append(Table(("checkpoint", "kind", "verdict", *VERDICTS), list(map(_column, scorecard.checkpoints))))
    for column in scorecard.checkpoints:
        remarks = [column.error, *column.notes, None if column.gate else "shown only, no part of the exit code."]
        parts += [f"{column.id}: {remark}" for remark in remarks if remark]
    return Section("", parts)


def _column(column: ColumnResult) -> Sequence[object]:
    return column.id, column.kind, column.verdict, *(f"{column.counts[verdict]:,}" for verdict in VERDICTS)


def _matrix(scorecard: Scorecard) -> Iterator[Section]:
    """A section for each test, with a table for every few checkpoints."""
    ids = [column.id for column in scorecard.checkpoints]
    for test, lines in groupby(scorecard.matrix(), key=lambda line: line[0][0]):
        rows = [by_checkpoint for _, by_checkpoint in lines]
        description = next(iter(rows[0].values())).description
        tables = [_table(rows, ids[at : at + COLUMNS_A_TABLE]) for at in range(0, len(ids), COLUMNS_A_TABLE)]
        yield Section(test, [description, *tables] if description else tables)


def _table(rows: Sequence[Mapping[str, Row]], shown: Sequence[str]) -> Table:
    lines = []
    for by_checkpoint in rows:
        first = next(iter(by_checkpoint.values()))
        name = first.name + (" (advisory)" if first.severity == "advisory" else "")
        here = [by_checkpoint.get(column) for column in shown]
        lines.append((name, _n(here), *map(cell_text, here)))
    return Table(("assertion", "n", *shown), lines)


def _n(rows: Sequence[Row | None]) -> str:
    """The n of a line, "67 to 99" where checkpoints differ, as the n of a precision does."""
    sizes = sorted({row.n for row in rows if row is not None and row.n is not None})
    return f"{sizes[0]:,} to {sizes[-1]:,}" if len(sizes) > 1 else "".join(f"{n:,}" for n in sizes)


def _details(heading: str, rows: Sequence[Row]) -> Section:
    parts: list = []
    drawn = [row for row in rows if row.value is not None and row.interval is not None][:_CHART_ROWS]
    for kind, title in ((True, "change against the baseline"), (False, "value")):
        some = [row for row in drawn if (row.margin is not None) == kind]
        if some:
            parts.append(_chart(some, title))
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        alike.setdefault((row.checkpoint, row.message), []).append(row)
    for row, *others in list(alike.values())[:DETAILS]:
        name = f"{row.test}/{row.name}" + (f" and {len(others):,} more rows" if others else "")
        advisory = " (advisory)" if row.severity == "advisory" else ""
        parts.append(
            ". ".join(filter(None, (f"{row.checkpoint}, {name}{advisory}: {row.message}", _evidence(row)))) + "."
        )
    parts += conditions(row for row, *_ in list(alike.values())[:DETAILS])
    if len(alike) > DETAILS:
        parts.append(f"{len(alike) - DETAILS:,} more are left out; scorecard.json has all.")
    return Section(heading, parts)


def _chart(rows: Sequence[Row], title: str) -> Chart:
    """Intervals, with the bound as a faint dot below each."""
    drawn = [
        ChartRow(
            _short(f"{row.checkpoint} {_inner(row)}", _CHART_NAME),
            row.value,
            row.interval.low,
            row.interval.high,
            _short(f"needs {row.comparison} {_bound(row):.4g}", 30),
            dots=(_bound(row),),
        )
        for row in rows
    ]
    said = "; ".join(f"{row.checkpoint} {row.test}/{row.name}: {row.message}" for row in rows)
    return Chart(interval_chart(drawn, x_title=f"{title}; the dot below is the bound"), f"Intervals: {said}")


def _inner(row: Row) -> str:
    """What tells the row from others of its assertion, else the assertion."""
    parts = [row.label] if row.label is not None else []
    return " ".join([*parts, *(row.slice or {}).values()]) or row.assertion


def _bound(row: Row) -> float:
    return row.threshold if row.threshold is not None else row.margin


def _evidence(row: Row) -> str:
    evidence, parts = row.evidence, []
    if evidence.baseline is not None and evidence.candidate is not None:
        parts.append(f"{format_rate(evidence.candidate)} against {format_rate(evidence.baseline)}")
        parts.append(f"{evidence.worse_total:,} worse, {evidence.better_total:,} better")
    if evidence.p is not None:
        parts.append(f"McNemar p = {evidence.p:.3g}")
    if evidence.failing_total:
        ids = ", ".join(example.id for example in evidence.failing[:8])
        parts.append(f"{evidence.failing_total:,} items: {ids}{', …' if evidence.failing_total > 8 else ''}")
    if evidence.more_needed:
        parts.append(more_items(row, listed=True))
    return "; ".join([*parts, *evidence.notes])


def _again(scorecard: Scorecard, command: str) -> Section:
    digests = [(c.id, c.digest or "") for c in scorecard.checkpoints]
    parts = [Code(command), f"Suite {scorecard.suite}, SHA-256 {scorecard.suite_sha256}; data {scorecard.data_sha256}."]
    parts.append(Table(("checkpoint", "SHA-256"), digests))
    parts.append("Settings: " + ", ".join(f"{name} {value}" for name, value in scorecard.settings.items()) + ".")
    return Section("The same again", parts)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
