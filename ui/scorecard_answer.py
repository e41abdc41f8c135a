"""Draws a scorecard: the conclusion first, then the matrix, checkpoints, settings and downloads."""

from __future__ import annotations

import streamlit as st

from refusal_core.errors import one_line
from refusal_core.limits import MATRIX_ROWS_SHOWN
from refusal_core.scorecard import Scorecard
from refusal_core.scorecard.report import assumptions
from refusal_core.scorecard.verdicts import SYMBOL, VERDICTS
from ui import scorecard as logic
from ui import show, state
from ui.scorecard import Filters, Line
from ui.scorecards import STORED, Task

COLUMNS_TOLD = 8  # checkpoints in words below the conclusion; a tab lists all
CLICKED = "scorecard_clicked"  # the last click on the matrix that was followed
WHOLE_ROWS, TABLE_PIXELS = 20, 640  # a longer matrix scrolls
NAME_PIXELS = (110, 200)  # of the first column: as wide as its names, between these


def draw_answer(task: Task) -> None:
    """The conclusion in the largest type, then a line for each checkpoint."""
    scorecard = task.scorecard
    word = logic.conclusion_word(scorecard)
    show.headline(
        "{symbol} {word}: {counts}; exit code {code}",
        symbol=logic.WORD_SYMBOL.get(word, "!"),
        word=word.capitalize(),
        counts=logic.counts_words(scorecard.counts),
        code=scorecard.exit_code,
    )
    lines = []
    for column in scorecard.checkpoints[:COLUMNS_TOLD]:
        aside = "" if column.gate else ", shown only"
        lines.append(
            f"{logic.WORD_SYMBOL[column.verdict]} {one_line(column.id, 80)}: {column.verdict}{aside} "
            f"({logic.counts_words(column.counts)})"
        )
    if len(scorecard.checkpoints) > COLUMNS_TOLD:
        lines.append(f"and {len(scorecard.checkpoints) - COLUMNS_TOLD:,} more, in the tab Checkpoints")
    with st.container(gap="xsmall"):
        show.text("\n".join(lines))
        show.text(f"{one_line(scorecard.description or scorecard.suite)} ({task.source.shown})")
        _rule(scorecard)
    if task.source.kind == STORED:
        show.note("This is a result of the history: it has no texts of exchanges.")
    for text in (*scorecard.notes, *assumptions(scorecard)):
        show.note(text)


def _rule(scorecard: Scorecard) -> None:
    settings = scorecard.settings
    if settings["verdict"] == "interval":
        show.sentence(
            ":small[A row passes when its whole {level} interval meets what is needed, fails when none of it does, and "
            "is inconclusive between.]",
            level=f"{settings['confidence']:.0%}",
        )
    else:
        st.markdown(":small[Values are compared with their bounds as they are, without regard to their intervals.]")


def draw_matrix(task: Task) -> list[Line]:
    """The filters and the lines that pass them; a click on a cell chooses it."""
    scorecard = task.scorecard
    st.subheader("Assertions by checkpoint", anchor=False)
    lines = logic.listed(logic.lines_of(scorecard), _filters(scorecard))
    if not lines:
        st.markdown("No row has such a cell.")
        return lines
    shown = lines[:MATRIX_ROWS_SHOWN]
    rows = logic.table(scorecard, shown)
    longest = max(len(row["assertion"]) for row in rows)
    name_pixels = min(max(NAME_PIXELS[0], 16 + 7 * longest), NAME_PIXELS[1])
    columns = {
        "assertion": st.column_config.TextColumn("assertion", pinned=True, width=name_pixels),
        "needs": st.column_config.TextColumn("needs", width=170),
    }
    for key, header in logic.headers(scorecard).items():
        columns[key] = st.column_config.TextColumn(header, width=max(300, 9 * len(header) + 40))
    key = f"scorecard_matrix_{task.token}_{hash(tuple(at for at, _ in shown))}"
    event = st.dataframe(
        rows,
        hide_index=True,
        key=key,
        column_config=columns,
        on_select="rerun",
        selection_mode="single-cell",
        height="content" if len(rows) <= WHOLE_ROWS else TABLE_PIXELS,
        alt=_alt(scorecard, lines),
    )
    _follow(scorecard, shown, key, event["selection"]["cells"])
    if len(lines) > len(shown):
        show.sentence("The first {n} of {all} rows; filter, or take a download.", n=len(shown), all=f"{len(lines):,}")
    return lines


def _filters(scorecard: Scorecard) -> Filters:
    verdicts, tests, severities = st.columns([5, 4, 3], vertical_alignment="top")
    there = [verdict for verdict in VERDICTS if scorecard.counts[verdict]]
    names = logic.tests_of(scorecard)
    for key, options in (
        (state.SC_VERDICTS, there), (state.SC_TESTS, names), (state.SC_SEVERITIES, logic.SEVERITIES)
    ):  # fmt: skip
        st.session_state[key] = [value for value in st.session_state[key] if value in options]
    kept = {"persist_state": "session"}
    with verdicts:
        st.pills(
            "Verdict", there, selection_mode="multi", key=state.SC_VERDICTS, format_func=_with_symbol, wrap=True, **kept
        )  # fmt: skip
    with tests:
        st.multiselect("Test", names, key=state.SC_TESTS, placeholder="all", **kept)
    with severities:
        st.pills("Severity", logic.SEVERITIES, selection_mode="multi", key=state.SC_SEVERITIES, **kept)
    return Filters(*(tuple(st.session_state[key]) for key in (state.SC_VERDICTS, state.SC_TESTS, state.SC_SEVERITIES)))


def _with_symbol(verdict: str) -> str:
    return f"{show.plain(SYMBOL[verdict])} {verdict}"


def _follow(scorecard: Scorecard, lines: list[Line], key: str, cells: list) -> None:
    """Choose the cell of a new click; a click in the first columns chooses the line."""
    clicked = (key, *map(tuple, cells))
    if not cells or st.session_state.get(CLICKED) == clicked:
        return
    st.session_state[CLICKED] = clicked
    row, column = cells[0]
    if row < len(lines):
        st.session_state[state.SC_ROW] = lines[row][0]
    if str(column)[:1] == "c" and str(column)[1:].isdigit() and int(column[1:]) < len(scorecard.checkpoints):
        st.session_state[state.SC_COLUMN] = int(column[1:])


def _alt(scorecard: Scorecard, lines: list[Line]) -> str:
    size = f"{len(lines)} assertions by {len(scorecard.checkpoints)} checkpoints"
    return f"{size}: {logic.counts_words(scorecard.counts)}. Choose an assertion and a checkpoint below to read a cell."


def draw_checkpoints(scorecard: Scorecard) -> None:
    """Each checkpoint with its verdict, counts, digest and notes."""
    rows = []
    for column in scorecard.checkpoints:
        aside = [] if column.gate else ["shown only, no part of the exit code"]
        remarks = [column.error or "", *column.notes, *aside]
        rows.append(
            {"checkpoint": column.id, "verdict": f"{logic.WORD_SYMBOL[column.verdict]} {column.verdict}"}
            | {verdict: column.counts[verdict] for verdict in VERDICTS}
            | {"kind": column.kind, "SHA-256": column.digest or "", "note": one_line(" ".join(filter(None, remarks)))}
        )
    st.dataframe(
        rows,
        hide_index=True,
        key="scorecard_checkpoints",
        alt="Each checkpoint with its verdict, the number of rows by verdict, kind, digest and notes.",
    )
    for column in scorecard.checkpoints:
        if column.error:
            show.text(f"{column.id}: {column.error}")
    st.markdown("#### Settings")
    show.facts(("setting", "value"), list(scorecard.settings.items()))
    show.text(f"Suite {scorecard.suite}, SHA-256 {scorecard.suite_sha256}")
    show.text(f"Data SHA-256 {scorecard.data_sha256}")
    if scorecard.baseline:
        show.text(f"Changes are against {scorecard.baseline}, item by item; positive is better.")


def draw_downloads(task: Task) -> None:
    """Four files, made when they are clicked, and the command that writes the same."""
    scorecard = task.scorecard
    with st.container(horizontal=True):
        show.download("JSON", task.text, "scorecard.json", key="scorecard_json")
        show.download("CSV", lambda: logic.csv_text(scorecard), "scorecard.csv", key="scorecard_csv")
        show.download("JUnit", lambda: logic.junit_text(scorecard), "scorecard.xml", key="scorecard_junit")
        show.download("HTML report", lambda: logic.html_text(task), "scorecard.html", key="scorecard_html")
        if task.source.content:
            show.download("The suite", task.source.text, task.source.name, key="scorecard_suite")
    if task.source.kind == STORED:
        st.markdown("The suite's name is known, but not where it lay: name its file in the command.")
    show.text(logic.where_files_lie(task.source))
    show.code(logic.command(task.source), "bash")
    show.text(f"SHA-256 of scorecard.json {task.digest}")
