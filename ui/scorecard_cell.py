"""Draws one cell of a scorecard: its evidence, and what would decide it."""

from __future__ import annotations

import streamlit as st

from refusal_core.errors import one_line
from refusal_core.metrics.intervals import format_rate
from refusal_core.plots import scorecard as plots
from refusal_core.scorecard import Example, Row, Scorecard
from refusal_core.scorecard.report import more_items
from refusal_core.scorecard.verdicts import SYMBOL
from ui import scorecard as logic
from ui import show, state
from ui.scorecard import Line

PROMPT_SHOWN, RESPONSE_SHOWN = 120, 160
WHOLE_ROWS, LIST_PIXELS = 7, 250


def choose(scorecard: Scorecard, lines: list[Line]) -> tuple[int, int] | None:
    """The boxes that choose a cell by keyboard; its place in the matrix, None where no line is listed."""
    if not lines:
        return None
    names = {at: logic.name_of(logic.any_row((at, cells))) for at, cells in lines}
    columns = list(range(len(scorecard.checkpoints)))
    if st.session_state[state.SC_ROW] not in names:
        st.session_state[state.SC_ROW] = lines[0][0]
    if st.session_state[state.SC_COLUMN] not in columns:
        st.session_state[state.SC_COLUMN] = 0
    left, right = st.columns([3, 2])
    left.selectbox(
        "Assertion", list(names), format_func=lambda at: one_line(names[at], 120), key=state.SC_ROW,
        persist_state="session",
    )  # fmt: skip
    right.selectbox(
        "Checkpoint", columns, format_func=lambda at: one_line(scorecard.checkpoints[at].id, 80), key=state.SC_COLUMN,
        persist_state="session",
    )  # fmt: skip
    return st.session_state[state.SC_ROW], st.session_state[state.SC_COLUMN]


def row_at(scorecard: Scorecard, place: tuple[int, int]) -> Row | None:
    """The row at a place of the matrix."""
    _, cells = scorecard.matrix()[place[0]]
    return cells.get(scorecard.checkpoints[place[1]].id)


def draw(scorecard: Scorecard, place: tuple[int, int]) -> None:
    """What the chosen cell rests on."""
    row = row_at(scorecard, place)
    if row is None:
        st.markdown("This assertion has no row for this checkpoint.")
        return
    show.sentence("**{symbol} {verdict}** · {severity}", symbol=SYMBOL[row.verdict], verdict=row.verdict,
                  severity=row.severity)  # fmt: skip
    show.text(row.message)
    if row.description:
        show.text(row.description)
    _decide(row)
    _, cells = scorecard.matrix()[place[0]]
    if drawn := plots.against_bound(row, [cells[c.id] for c in scorecard.checkpoints if c.id in cells]):
        show.figure(drawn, key="scorecard_interval")
    _numbers(row)
    _flips(row, scorecard.baseline)
    _failing(row)


def _decide(row: Row) -> None:
    if row.verdict == "inconclusive" and (said := more_items(row)):
        show.sentence("{said}.", said=said[:1].upper() + said[1:])


def _numbers(row: Row) -> None:
    evidence = row.evidence
    facts = []
    if evidence.candidate is not None:
        facts.append(("this checkpoint", format_rate(evidence.candidate)))
    if evidence.baseline is not None:
        facts.append(("the baseline", format_rate(evidence.baseline)))
    if evidence.raw is not None:
        facts.append(("rate as the classifier answers", format_rate(evidence.raw)))
    if evidence.corrected is not None:
        facts.append(("rate corrected for its errors", format_rate(evidence.corrected)))
    if evidence.p is not None:
        facts.append(("McNemar's exact p, two-sided", f"{evidence.p:.3g}"))
    if evidence.left_out:
        facts.append(("items left out", f"{evidence.left_out:,}"))
    if facts:
        show.facts(("what", "value"), facts)
    for text in evidence.notes:
        show.text(text)
    if row.interval is not None:
        show.sentence(
            ":small[:gray[{level} interval: {method}]]",
            level=f"{100 * row.interval.level:.3g}%",
            method=row.interval.method,
        )


def _flips(row: Row, baseline: str | None) -> None:
    """The items that changed against the baseline, in both directions."""
    evidence = row.evidence
    if evidence.candidate is None and not evidence.worse_total and not evidence.better_total:
        return
    rate = row.type.removeprefix("not-") == "rate"
    st.markdown("#### Flips against the baseline")
    sides = (
        (evidence.worse, evidence.worse_total, "came into the class" if rate else "right there, wrong here"),
        (evidence.better, evidence.better_total, "left the class" if rate else "wrong there, right here"),
    )
    for at, (place, (ids, total, words)) in enumerate(zip(st.columns(2, gap="medium"), sides, strict=True)):
        with place:
            show.sentence("**{n}** {words}", n=f"{total:,}", words=words)
            if ids:
                st.dataframe(
                    [{"id": name} for name in ids],
                    hide_index=True,
                    key=f"scorecard_flips_{at}",
                    height="content" if len(ids) <= WHOLE_ROWS else LIST_PIXELS,
                    alt=f"Ids of the items that are {words}.",
                )
            if total > len(ids):
                show.sentence(":small[The first {n} are listed.]", n=f"{len(ids):,}")


def _failing(row: Row) -> None:
    evidence = row.evidence
    if not evidence.failing_total:
        return
    show.sentence(
        "#### {words}", words="Items that count against it" if row.type.endswith("rate") else "Items that fail"
    )
    show.sentence("{n} of {all} are listed.", n=f"{len(evidence.failing):,}", all=f"{evidence.failing_total:,}")
    with_texts = any(example.exchange is not None for example in evidence.failing)
    chosen = _pick(row, evidence.failing, with_texts)
    if with_texts and chosen is not None and chosen.exchange is not None:
        left, right = st.columns([2, 3])
        with left:
            st.markdown(":gray[Prompt]")
            show.text(chosen.exchange.prompt or "not given")
        with right:
            st.markdown(":gray[Response]")
            show.text(chosen.exchange.response)
    elif not with_texts:
        st.markdown(":small[:gray[The files hold no texts of these items, only their ids.]]")


def _pick(row: Row, failing: tuple[Example, ...], with_texts: bool) -> Example | None:
    """The table of the items; the one whose texts are shown, by click or by the box."""
    key = f"scorecard_failing_{hash((row.key, row.checkpoint))}"
    rows = [_cells(example, with_texts) for example in failing]
    event = st.dataframe(
        rows,
        hide_index=True,
        key=key,
        on_select="rerun" if with_texts else "ignore",
        selection_mode="single-row",
        column_config={"p": st.column_config.NumberColumn(format="%.3f")},
        height="content" if len(rows) <= WHOLE_ROWS else LIST_PIXELS,
        alt="Items with id, answer, expected class, probability of the answer and the start of the texts.",
    )
    if not with_texts:
        return None
    names = [one_line(example.id, 80) for example in failing]
    clicked = event["selection"]["rows"]
    if clicked and st.session_state.get(f"{key}_seen") != clicked:
        st.session_state[f"{key}_seen"] = clicked
        st.session_state[f"{key}_item"] = clicked[0]
    at = st.selectbox(
        "Read an item", range(len(names)), format_func=lambda at: names[at], key=f"{key}_item", width=320
    )  # fmt: skip
    return failing[at]


def _cells(example: Example, with_texts: bool) -> dict[str, object]:
    cells: dict[str, object] = {
        "id": one_line(example.id, 80), "answered": example.predicted or "", "expected": example.expected or "",
        "p": example.probability,
    }  # fmt: skip
    if with_texts and example.exchange is not None:
        cells["response"] = one_line(example.exchange.response[: RESPONSE_SHOWN + 1], RESPONSE_SHOWN)
        cells["prompt"] = one_line(example.exchange.prompt[: PROMPT_SHOWN + 1], PROMPT_SHOWN)
    return cells
