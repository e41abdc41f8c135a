"""A scorecard as JSON, CSV and a table for the terminal; JUnit is in `junit.py`, HTML in `plots`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import IO

from refusal_core.errors import one_line
from refusal_core.metrics.intervals import Rate, digits_for, format_rate
from refusal_core.reports import to_json, write_csv
from refusal_core.scorecard.result import UNTIL_SUPPORT, Row, Scorecard
from refusal_core.scorecard.verdicts import SYMBOL, VERDICTS

CSV_HEADER = (
    "test", "assertion", "type", "label", "slice", "checkpoint", "verdict", "severity", "value", "low", "high", "level",
    "method", "n", "threshold", "margin", "comparison", "p", "worse", "better", "more_needed", "message",
)  # fmt: skip
_NAME, _CELL = 44, 25  # characters of a row's name and of a cell
_DETAILS, _UNDECIDED = 40, 12  # rows below the table, and undecided ones


def json_text(scorecard: Scorecard) -> str:
    """The contents of `scorecard.json`: strict, keys in order, the same bytes for the same suite, data and seed."""
    return to_json(scorecard.as_json(), indent=2) + "\n"


def write_csv_rows(file: IO[str], scorecard: Scorecard) -> None:
    """One line a row of the scorecard."""
    write_csv(file, CSV_HEADER, map(_csv_row, scorecard.rows))


def terminal_table(scorecard: Scorecard, width: int = 120) -> str:
    """The matrix for a terminal of `width` characters: symbol, value and interval; then what went wrong."""
    shown = [column.id for column in scorecard.checkpoints]
    name = min(_NAME, max(20, width - len(shown) * (_CELL + 2)))
    fitting = max(1, (width - name) // (_CELL + 2))
    parts = []
    for at in range(0, len(shown), fitting):
        parts.append(_block(scorecard, shown[at : at + fitting], name))
    parts.append(_details(scorecard, width))
    return "\n".join(filter(None, parts)) + "\n"


def cell_text(row: Row | None) -> str:
    """A cell in words: "✓ 0.84 (0.79 to 0.88)"; what cannot be shown as a number says why it is none."""
    if row is None:
        return ""
    return f"{SYMBOL[row.verdict]} {short_value(row) or row.verdict}"


def more_items(row: Row, *, listed: bool = False) -> str:
    """How many further items would decide and under which condition; the reason alone where no number would.

    `listed` leaves the condition out, for a list below which `conditions` says it once.
    """
    more = row.evidence.more_needed
    if not more:
        return row.evidence.assumption
    items = f"{more:,} more item{'s' if more > 1 else ''}"
    if not _conditional(row):
        return f"{items} would reach the support that is asked for"
    return f"about {items} would decide" + ("" if listed else f", {row.evidence.assumption}")


def conditions(rows: Iterable[Row]) -> list[str]:
    """What the counts of a list of rows hold under, as one sentence; none where no row has such a count."""
    said = "Counts of further items hold if the values stay as they are and further items are like these."
    return [said] if any(map(_conditional, rows)) else []


def _conditional(row: Row) -> bool:
    return bool(row.evidence.more_needed) and row.evidence.assumption != UNTIL_SUPPORT


def short_value(row: Row) -> str:
    """Value with interval, without n; "" where there is no value."""
    if row.value is None:
        return ""
    if row.margin is not None and row.interval is not None:
        digits = digits_for(row.interval.width)
        return f"{row.value:+.{digits}f} ({row.interval.low:+.{digits}f} to {row.interval.high:+.{digits}f})"
    if row.interval is None:
        return (
            f"{row.value:,.0f}" if float(row.value).is_integer() and row.type not in ("metric",) else f"{row.value:.3f}"
        )
    return format_rate(Rate(row.value, 0, row.interval)).replace(", n = 0)", ")")


def _csv_row(row: Row) -> Sequence[object]:
    interval, evidence = row.interval, row.evidence
    ends = (interval.low, interval.high, interval.level, interval.method) if interval else (None,) * 4
    part = "; ".join(f"{name}={value}" for name, value in (row.slice or {}).items()) or None
    flips = evidence.candidate is not None
    return (
        row.test, row.assertion, row.type, row.label, part, row.checkpoint, row.verdict, row.severity, row.value, *ends,
        row.n, row.threshold, row.margin, row.comparison, evidence.p, evidence.worse_total if flips else None,
        evidence.better_total if flips else None, evidence.more_needed, row.message,
    )  # fmt: skip


def _block(scorecard: Scorecard, shown: Sequence[str], name: int) -> str:
    lines = [f"{'':<{name}}  " + "  ".join(f"{_cut(column, _CELL):<{_CELL}}" for column in shown)]
    test = None
    for _, by_checkpoint in scorecard.matrix():
        row = next(iter(by_checkpoint.values()))
        if row.test != test:
            test = row.test
            lines.append(_cut(test, name))
        advisory = " (advisory)" if row.severity == "advisory" else ""
        title = f"  {_cut(row.name, name - 2 - len(advisory))}{advisory}"
        cells = (f"{_cut(cell_text(by_checkpoint.get(column)), _CELL):<{_CELL}}" for column in shown)
        lines.append(f"{title:<{name}}  " + "  ".join(cells).rstrip())
    verdicts = {column.id: column.verdict for column in scorecard.checkpoints}
    lines.append(f"{'suite verdict':<{name}}  " + "  ".join(f"{verdicts[column]:<{_CELL}}" for column in shown))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _details(scorecard: Scorecard, width: int) -> str:
    """What failed, erred or is undecided, in words; the required rows first."""
    order = {"fail": 0, "error": 1, "inconclusive": 2}
    rows = [row for row in scorecard.rows if row.verdict in order]
    rows.sort(key=lambda row: (row.severity != "required", order[row.verdict]))
    alike: dict[tuple[str, str], list[Row]] = {}  # a checkpoint that cannot be loaded says so once
    for row in rows:
        alike.setdefault((row.checkpoint, row.message), []).append(row)
    clear = [group for group in alike.values() if group[0].verdict != "inconclusive"]
    undecided = [group for group in alike.values() if group[0].verdict == "inconclusive"]
    lines = []
    for groups, most in ((clear, _DETAILS), (undecided, _UNDECIDED)):
        lines += _paragraphs(groups[:most], width)
        if len(groups) > most:
            more = sum(map(len, groups[most:]))
            rows = "row" if more == 1 else "rows"
            lines.append(f"  and {more:,} more {groups[0][0].verdict} {rows}; --json or --html has all")
        lines += (part for said in conditions(g[0] for g in groups[:most]) for part in textwrap.wrap(said, width))
    for column in scorecard.checkpoints:
        lines += [one_line(f"{column.id}: {note}") for note in column.notes]
    return "\n".join([*lines, *map(one_line, scorecard.notes), *assumptions(scorecard)])


def assumptions(scorecard: Scorecard) -> list[str]:
    """What the corrected rates assume, once."""
    found = {note for row in scorecard.rows for note in row.evidence.notes if note.startswith("corrected, assuming")}
    return [f"Rates {note}." for note in sorted(found)]


def _paragraphs(groups: Iterable[Sequence[Row]], width: int) -> Iterable[str]:
    for row, *others in groups:
        hint = f"; {more_items(row, listed=True)}" if row.evidence.more_needed else ""
        name = f"{row.test}/{row.name}" + (f" and {len(others):,} more rows" if others else "")
        text = f"{SYMBOL[row.verdict]} {row.checkpoint}: {name}: {row.message}{hint}"
        yield "\n".join(textwrap.wrap(one_line(text), width, subsequent_indent="    "))


def _cut(text: str, most: int) -> str:
    text = one_line(text, 400)
    return text if len(text) <= most else text[: most - 1] + "…"


__all__ = [
    "CSV_HEADER",
    "VERDICTS",
    "cell_text",
    "conditions",
    "json_text",
    "more_items",
    "short_value",
    "terminal_table",
    "write_csv_rows",
]
