"""What the Scorecard page does apart from drawing: filters, the matrix, links, downloads, the command.

Imports no streamlit.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from refusal_core.commands.scorecard import command_of
from refusal_core.errors import one_line
from refusal_core.limits import MATRIX_ROWS_SHOWN
from refusal_core.plots.scorecard import needs
from refusal_core.plots.scorecard_report import scorecard_report
from refusal_core.scorecard import Row, Scorecard
from refusal_core.scorecard.junit import junit
from refusal_core.scorecard.report import short_value, write_csv_rows
from refusal_core.scorecard.verdicts import SYMBOL, VERDICTS
from ui.playground import near
from ui.scorecards import DRAFT, FILE, SAMPLE, TYPED, Source, Task

if TYPE_CHECKING:
    from refusal_core.scorecard import SuiteFile

SEVERITIES = ("required", "advisory")
WORD_SYMBOL = {"pass": "✓", "fail": "✕", "error": "!", "inconclusive": "~", "nothing ran": "–", "empty": "–"}
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,40}")
_PLACE = re.compile(r"(\d{1,5})\.(\d{1,3})")
_NAME_CHARACTERS = 400
Line = tuple[int, Mapping[str, Row]]  # place in the whole matrix, and the row of each checkpoint


@dataclass(frozen=True)
class Filters:
    """Which lines are listed: with a cell of these verdicts, of these tests, of these severities (none: all)."""

    verdicts: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Link:
    """What a link holds. `suite` is "sample:NAME" or a path below a data root; `cell` a place in the matrix."""

    suite: str | None = None
    run: str | None = None
    result: str | None = None
    verdicts: tuple[str, ...] = ()
    cell: tuple[int, int] | None = None


def lines_of(scorecard: Scorecard) -> list[Line]:
    """The lines of the matrix in order."""
    return [(at, cells) for at, (_, cells) in enumerate(scorecard.matrix())]


def listed(lines: Sequence[Line], filters: Filters) -> list[Line]:
    """The lines that pass: each filter asks the same cell."""

    def passes(row: Row) -> bool:
        return (
            (not filters.verdicts or row.verdict in filters.verdicts)
            and (not filters.tests or row.test in filters.tests)
            and (not filters.severities or row.severity in filters.severities)
        )

    return [line for line in lines if any(map(passes, line[1].values()))]


def tests_of(scorecard: Scorecard) -> list[str]:
    return list(dict.fromkeys(row.test for row in scorecard.rows))


def name_of(row: Row) -> str:
    """Test and assertion, with class and slice, and whether it is advisory."""
    return f"{row.test} / {row.name}" + (" (advisory)" if row.severity == "advisory" else "")


def any_row(line: Line) -> Row:
    return next(iter(line[1].values()))


def cell_words(row: Row | None) -> str:
    """Symbol, verdict, value with interval, n."""
    if row is None:
        return ""
    words = f"{SYMBOL[row.verdict]} {row.verdict}"
    if value := short_value(row):
        words += f"  {value}"
        if row.n is not None and row.interval is not None:
            words = f"{words.removesuffix(')')}, n = {row.n:,})"
    return words


def short_name(row: Row) -> str:
    """The assertion with the class and the slice's values where it was unfolded."""
    inner = [row.label] if row.label is not None else []
    inner += (row.slice or {}).values()
    return f"{row.assertion} [{', '.join(inner)}]" if inner else row.assertion


def table(scorecard: Scorecard, lines: Sequence[Line]) -> list[dict[str, str]]:
    """A row of cells for each line; the columns of checkpoints are c0, c1, …

    The first column stays in sight while others scroll, so it is short: the test is named there only where two tests
    have an assertion of that name.
    """
    ids = [column.id for column in scorecard.checkpoints]
    owners: dict[str, set[str]] = {}
    for row in scorecard.rows:
        owners.setdefault(short_name(row), set()).add(row.test)
    rows = []
    for line in lines[:MATRIX_ROWS_SHOWN]:
        row = any_row(line)
        name = short_name(row)
        shown = f"{row.test} / {name}" if len(owners[name]) > 1 else name
        cells = {f"c{at}": cell_words(line[1].get(one)) for at, one in enumerate(ids)}
        rows.append(
            {"assertion": one_line(shown, 160)}
            | cells
            | {"needs": _needs(line), "severity": row.severity, "test": one_line(row.test, 80)}
        )
    return rows


def headers(scorecard: Scorecard) -> dict[str, str]:
    """Of the checkpoints' columns: id and verdict."""
    return {
        f"c{at}": f"{one_line(column.id, 60)} {WORD_SYMBOL[column.verdict]} {column.verdict}"
        for at, column in enumerate(scorecard.checkpoints)
    }


def first_cell(scorecard: Scorecard) -> tuple[int, int]:
    """Where to look first: a required failure, then what failed, erred or is undecided."""
    ids = [column.id for column in scorecard.checkpoints]
    wanted = [("fail", "required"), ("error", "required"), ("fail", ""), ("inconclusive", ""), ("error", "")]
    for verdict, severity in wanted:
        for at, cells in lines_of(scorecard):
            for place, name in enumerate(ids):
                row = cells.get(name)
                if row is not None and row.verdict == verdict and severity in ("", row.severity):
                    return at, place
    return 0, 0


def counts_words(counts: Mapping[str, int]) -> str:
    """ "14 pass, 2 fail, 3 inconclusive"."""
    return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if counts.get(verdict)) or "no row"


def conclusion_word(scorecard: Scorecard) -> str:
    """The word that the printed line opens with, in lower case."""
    return scorecard.sentence.partition(":")[0].lower()


def checked(file: SuiteFile) -> str:
    """What a valid suite holds, in one sentence."""
    suite = file.suite
    assertions = sum(len(test.asserts) for test in suite.tests)
    return (
        f"The suite is valid: {_many(assertions, 'assertion')} in {_many(len(suite.tests), 'test')} "
        f"over {_many(len(suite.checkpoints), 'checkpoint')}."
    )


def suite_argument(source: Source) -> str:
    """The suite as the command line names it."""
    if source.path is not None:
        return near(source.path)
    return source.name if source.name.endswith((".yaml", ".yml")) else f"{source.name}.yaml"


def command(source: Source, *, files: bool = True) -> str:
    """The shell line that gives the same scorecard, with the files that can be downloaded."""
    choice = source.choice
    given = Namespace(
        suite=suite_argument(source), checkpoints=choice.checkpoints, baseline=choice.baseline, filter=choice.only
    )
    outputs = " --json scorecard.json --csv scorecard.csv --junit scorecard.xml --html scorecard.html"
    return command_of(given) + (outputs if files else "")


def where_files_lie(source: Source) -> str:
    """What must be so for the command to find its files."""
    if source.path is not None:
        return "The same as this command, given in the app's folder:"
    if source.kind in (TYPED, DRAFT) or source.edited:
        return "The same as this command, with the suite saved beside its files:"
    return "The same as this command, with the uploaded files in one folder:"


def csv_text(scorecard: Scorecard) -> str:
    file = StringIO(newline="")
    write_csv_rows(file, scorecard)
    return file.getvalue()


def junit_text(scorecard: Scorecard) -> str:
    return junit(scorecard)


def html_text(task: Task) -> str:
    return scorecard_report(task.scorecard, command=command(task.source, files=False))


def to_params(link: Link) -> dict[str, str]:
    """The query parameters of a link."""
    cell = f"{link.cell[0]}.{link.cell[1]}" if link.cell else None
    given = {"suite": link.suite, "run": link.run, "result": link.result, "show": "-".join(link.verdicts), "cell": cell}
    return {name: value.replace(" ", "_") if name == "show" else value for name, value in given.items() if value}


def from_params(params: Mapping[str, str]) -> tuple[Link, list[str]]:
    """The link that parameters describe, and a sentence for each that was ignored. Never raises."""
    ignored = []
    suite, token, result = params.get("suite"), params.get("run"), params.get("result")
    if suite is not None and not (0 < len(suite) <= _NAME_CHARACTERS and suite == one_line(suite, _NAME_CHARACTERS)):
        suite = None
        ignored.append("The link names a suite that cannot be; it was left out.")
    if token is not None and not _TOKEN.fullmatch(token):
        token = None
        ignored.append("The link names a result that cannot be; it was left out.")
    if result is not None and not re.fullmatch("[0-9a-f]{64}", result):
        result = None
        ignored.append("The link names a stored result that cannot be; it was left out.")
    asked = [word.replace("_", " ") for word in params.get("show", "").split("-") if word]
    verdicts = tuple(verdict for verdict in VERDICTS if verdict in asked)
    if set(asked) - set(VERDICTS):
        ignored.append("The link filters by a verdict that is not known here.")
    cell, found = None, _PLACE.fullmatch(params.get("cell", ""))
    if found:
        cell = (int(found[1]), int(found[2]))
    elif params.get("cell"):
        ignored.append("The link names a cell that cannot be; it was left out.")
    return Link(suite, token, result, verdicts, cell), ignored


def suite_in_link(source: Source) -> str | None:
    """How a link names a suite; None for one that only this session has."""
    if source.edited or source.choice != type(source.choice)():
        return None
    return {SAMPLE: f"sample:{source.shown.removeprefix('the sample ')}", FILE: source.shown}.get(source.kind)


def _needs(line: Line) -> str:
    return next((words for row in line[1].values() if (words := needs(row))), "")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
