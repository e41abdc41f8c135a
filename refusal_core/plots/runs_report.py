"""The HTML report of training runs: the page's answer, findings, curves and tables in one file that opens offline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from refusal_core.errors import InputError, one_line
from refusal_core.metrics.intervals import Rate, format_rate
from refusal_core.plots.batch_report import without_n
from refusal_core.plots.html import Banner, Chart, Code, Lead, Part, Section, Table, html_report
from refusal_core.plots.svg import Line as SvgLine
from refusal_core.plots.svg import Row, interval_chart, line_chart
from refusal_core.runs import view, view_compare
from refusal_core.runs.model import Run
from refusal_core.runs.tables import ResultsTable
from refusal_core.runs.view_classes import Evaluation, class_table, evaluations, matrix_of
from refusal_core.runs.view_compare import Candidate, SideBySide
from refusal_core.runs.view_report import Report, headline
from refusal_core.versions import versions

PANELS, LINES, POINTS = 12, 10, 3_000  # of all curves of one chart
EVALUATIONS, MATRIX_CLASSES, ROWS = 20, 12, 100
NAME = 21  # characters beside a chart
STYLES = ("accent", "grey", "ink", "accent dash", "grey dash", "ink dash", "accent thin", "grey thin", "ink thin")
PACKAGES = ("refusal-core", "numpy", "scipy")


def runs_report(report: Report, runs: Sequence[Run], *, name: str, command: str) -> str:
    """One self-contained file. `runs` are those of the report, under names that differ."""
    told = headline(runs)
    sections = [
        Section("", [Lead(told.sentence), *told.beside, f"Read from {name}: {len(runs):,} runs."]),
        Section("What does not add up", list(_findings(report))),
        *_curves(runs),
        *_checkpoints(runs),
        *_classes(runs),
        *_results(runs),
        Section("Settings", list(_settings(runs))),
        Section("Files that were not read, or not as they are", list(_problems(report))),
        Section("The same again", [Code(command), _versions()]),
    ]
    return html_report(f"Training runs in {name}", [section for section in sections if section.parts])


def _findings(report: Report) -> Iterator[Part]:
    for one in report.findings:
        yield Banner(f"{one.kind.replace('_', ' ')}: {one.run}, {one.where}")
        yield f"Found: {one.found}. Expected: {one.expected}. To do: {one.fix}"


def _curves(runs: Sequence[Run]) -> Iterator[Section]:
    found = view.panels(runs)
    axes = view.axes(runs)
    if not axes:
        return
    for panel in (*view.first_panels(found, PANELS), *(p for p in found if p.by_class))[:PANELS]:
        drawing = view.draw(runs, panel, axis=axes[0], points=POINTS)
        lines, words = [], []
        for line in drawing.lines[:LINES]:
            name = _line_name(line, len(runs) > 1)
            lines += _segments(line, name, STYLES[drawing.lines.index(line) % len(STYLES)])
            if odd := line.nan.count + line.above.count + line.below.count:
                words.append(f"{name}: {odd:,} values are no finite numbers.")
            words += [f"{name}: resumed at step {step:,.0f}." for _, step in line.resumed]
        if len(drawing.lines) > LINES:
            words.append(f"The first {LINES} of {len(drawing.lines)} lines.")
        ends = "; ".join(f"{line.name} ends at {line.y[-1]:.4g}" for line in lines if line.name)
        parts: list[Part] = []
        if lines:
            drawn = line_chart(lines, x_title=drawing.unit, y_title=panel.title)
            parts.append(Chart(drawn, f"{panel.title} by {drawing.unit}: {ends}."))
        yield Section(panel.title[:1].upper() + panel.title[1:], [*parts, *words, *drawing.left_out])


def _segments(line: view.Line, name: str, style: str) -> list[SvgLine]:
    """The parts between values that cannot be drawn, the last one with the name; a lone value is a short dash."""
    finite = np.isfinite(line.y)
    starts = np.flatnonzero(finite & ~np.concatenate([[False], finite[:-1]]))
    ends = np.flatnonzero(finite & ~np.concatenate([finite[1:], [False]]))
    dash = 0.004 * float(np.ptp(line.x)) if len(line.x) else 0.0
    parts = []
    for start, end in zip(starts, ends, strict=True):
        x, y = line.x[start : end + 1].tolist(), line.y[start : end + 1].tolist()
        x, y = (x, y) if len(x) > 1 else ([x[0] - dash, x[0] + dash], [*y, *y])
        parts.append(SvgLine(_short(name) if end == ends[-1] else "", x, y, style=style))
    return parts


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"…{name[1 - NAME :]}"


def _line_name(line: view.Line, many: bool) -> str:
    curve = line.curve
    name = " ".join(filter(None, (curve.label, curve.split, curve.dataset))) or curve.key
    return one_line(f"{line.run}: {name}" if many else name, 60)


def _checkpoints(runs: Sequence[Run]) -> Iterator[Section]:
    found = view_compare.candidates(runs)
    metrics = view_compare.offered(found)
    for metric in metrics[:3]:
        base = next(one for one in found if metric in view_compare.offered([one]))
        yield Section(f"Checkpoints by {view.spoken(metric)}", list(_side_by_side(found, metric, base)))


def _side_by_side(found: Sequence[Candidate], metric: str, base: Candidate) -> Iterator[Part]:
    table = view_compare.side_by_side(found, metric, base.key)
    known = [(one, e) for one, e in zip(table.candidates, table.entries, strict=True) if e.rate and e.rate.interval]
    if known:
        rows = [
            Row(_short(one.name), e.rate.value, e.rate.interval.low, e.rate.interval.high, format_rate(e.rate))
            for one, e in known[:ROWS]
        ]
        said = "; ".join(f"{one.name} {e.rate}" for one, e in known[:ROWS])
        yield Chart(interval_chart(rows, x_title=f"{view.spoken(metric)} with 95% interval"), f"{said}.")
    header = ("checkpoint", "step", view.spoken(metric), f"difference from {base.name}", "verdict")
    yield Table(header, list(_rows(table)))


def _rows(table: SideBySide) -> Iterator[tuple]:
    for one, entry in list(zip(table.candidates, table.entries, strict=True))[:ROWS]:
        difference = "baseline" if one is table.baseline else view_compare.difference_words(entry)
        yield one.name, one.step, view_compare.value_words(entry), difference, entry.verdict


def _classes(runs: Sequence[Run]) -> Iterator[Section]:
    shown = [one for one in evaluations(runs) if not one.variant][:EVALUATIONS]
    for one in shown:
        parts = list(_evaluation(one))
        if parts:
            yield Section(one.name, parts)


def _evaluation(one: Evaluation) -> Iterator[Part]:
    try:
        table, matrix = class_table(one), matrix_of(one)
    except InputError as error:
        yield str(error)
        return
    if table is None:
        yield "Not scored: the file does not say what its rows are, or holds shares only."
        return
    if table.accuracy is not None:
        yield f"Accuracy {format_rate(table.accuracy)}."
    rows = [(r.label, *(_rate(s) for s in (r.precision, r.recall, r.f1)), r.support) for r in table.rows[:ROWS]]
    rows += [(a.name, *(_rate(s) for s in (a.precision, a.recall, a.f1)), a.n) for a in table.averages]
    yield Table(("class", "precision", "recall", "F1", "support"), rows, caption=table.how)
    if matrix is not None and len(matrix.labels) <= MATRIX_CLASSES:
        cells = [(label, *(int(n) for n in row)) for label, row in zip(matrix.labels, matrix.counts, strict=True)]
        yield Table(("true \\ predicted", *matrix.labels), cells, caption="Confusion matrix: true classes down")


def _results(runs: Sequence[Run]) -> Iterator[Section]:
    for run in runs:
        for table in run.tables:
            if isinstance(table, ResultsTable):
                rows = [(r.group, r.metric, _number(r.value), r.n, r.status) for r in table.rows[:ROWS]]
                name = f"{table.file}: {table.tool}, {table.status}"
                yield Section(name, [Table(("of", "metric", "value", "n", "status"), rows)])


def _settings(runs: Sequence[Run]) -> Iterator[Part]:
    shown = [run for run in runs if run.settings][:6]
    rows = view_compare.differing(shown) if len(shown) > 1 else ()
    if rows:
        told = [(name, *("–" if v is None else one_line(str(v), 60) for v in values)) for name, values in rows[:ROWS]]
        yield Table(("setting", *(run.name for run in shown)), told, caption="Where the runs differ")
    elif len(shown) == 1:
        yield Table(
            ("setting", "value"), [(k, one_line(str(v), 80)) for k, v in list(shown[0].settings.items())[:ROWS]]
        )


def _problems(report: Report) -> Iterator[Part]:
    ours = [(one.file, one.what, one.fix) for one in report.problems if one.ours]
    if ours:
        yield Table(("file", "what", "to do"), ours[:ROWS])
        if len(ours) > ROWS:
            yield f"{len(ours) - ROWS:,} more are in the JSON."


def _versions() -> Part:
    return Table(("package", "version"), list(versions(PACKAGES).items()))


def _rate(rate: Rate) -> str:
    return without_n(rate) if rate.interval else _number(rate.value)


def _number(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.4f}"
