"""The table of a batch with its filters, the row that is selected in full, and the correction of its label."""

from __future__ import annotations

import streamlit as st

from refusal_core.classifier.batch import Batch, Summary
from refusal_core.classifier.stream import Answered
from refusal_core.exchanges import BadRow
from refusal_core.labels import LABELS, MEANING, Fold
from refusal_core.plots import playground as plots
from ui import batch as logic
from ui import feedback, show, state
from ui.batch import MARKS, ORDERS, Filters
from ui.batches import Task
from ui.feedback import Keeper
from ui.show import ClassName

TABLE_PIXELS = 420
SELECTED, NOTE = "batch_selected", "batch_note"


def draw(task: Task, batch: Batch, summary: Summary, fold: Fold, keeper: Keeper) -> None:
    """Filters, one page of the table, and the selected row. `keeper` takes corrections."""
    filters = _filters(batch, task)
    rows = logic.listed(batch, summary, task.labels, filters)
    if not rows:
        st.markdown("No row passes these filters.")
        return
    pages, page = logic.pages(rows), 1
    # Another filter, page or batch is another table, so that no selection outlives the row it was made on.
    place = f"{task.token}_{hash((filters, summary.fold.key, summary.threshold))}"
    with st.container(horizontal=True, vertical_alignment="center"):
        show.sentence("{n} of {all} rows", n=f"{len(rows):,}", all=f"{len(batch.rows):,}")
        if pages > 1:
            page = st.pagination(pages, key=f"batch_page_{place}")
    on_page = logic.page_of(rows, page)
    event = st.dataframe(
        logic.table(batch, on_page, task.labels, fold),
        hide_index=True,
        height=min(TABLE_PIXELS, 38 + 35 * len(on_page)),
        key=f"{SELECTED}_{place}_{page}",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "p": st.column_config.NumberColumn(format="%.3f", help="probability of the class"),
            "response": st.column_config.TextColumn(width="large"),
            "prompt": st.column_config.TextColumn(width="medium"),
        },
        alt="Rows of the batch with class, probability, verdicts and the start of both texts. Select one to read it.",
    )
    chosen = [on_page[i] for i in event["selection"]["rows"] if i < len(on_page)]
    if not chosen:
        st.markdown(":gray[Select a row, by the box at its left, to read it in full and to correct its label.]")
        return
    _selected(task, batch, chosen[0], keeper)


def _filters(batch: Batch, task: Task) -> Filters:
    marks = logic.marks_of(batch, task.labels)
    classes = list(batch.checkpoint.labels)
    for key, options in ((state.BATCH_MARKS, marks), (state.BATCH_CLASSES, classes)):
        st.session_state[key] = [value for value in st.session_state[key] if value in options]
    first, second = st.columns([5, 4]), st.columns([5, 2, 2])
    first[0].multiselect("Classes", classes, key=state.BATCH_CLASSES, persist_state="session", placeholder="all")
    first[1].text_input("Text contains", key=state.BATCH_TEXT, persist_state="session")
    second[0].pills(
        "Only rows where",
        marks,
        format_func=MARKS.get,
        selection_mode="multi",
        key=state.BATCH_MARKS,
        persist_state="session",
        wrap=True,
    )
    second[1].selectbox("Order", list(ORDERS), format_func=ORDERS.get, key=state.BATCH_ORDER, persist_state="session")
    second[2].number_input(
        "Low confidence is below", 0.0, 1.0, step=0.05, key=state.BATCH_THRESHOLD, persist_state="session"
    )
    return Filters(
        tuple(st.session_state[state.BATCH_CLASSES]),
        tuple(st.session_state[state.BATCH_MARKS]),
        st.session_state[state.BATCH_TEXT],
        st.session_state[state.BATCH_ORDER],
    )


def _selected(task: Task, batch: Batch, at: int, keeper: Keeper) -> None:
    row = batch.rows[at]
    with st.container(border=True):
        show.text(f"Line {row.row.line}, id {row.row.id}")
        if isinstance(row.row, BadRow):
            show.text(row.row.error)
            return
        words, bars = st.columns([6, 5], gap="medium")
        with words:
            if row.answer.label is None:
                show.text(f"Not classified: {row.answer.error}")
            else:
                _class_line(row)
            if row.matched:
                found = f"found “{row.matched.phrase}”" if row.matched.phrase else "no phrase found"
                show.sentence("Phrase matcher: {label}, {found}.", label=ClassName(row.matched.label), found=found)
            if row.row.label is not None:
                show.text(f"Label{' (corrected)' if at in task.labels else ' in the file'}: {row.row.label}")
            for warning in row.answer.warnings:
                show.note(warning)
            _correction(task, row, at, keeper)
        if row.answer.probabilities:
            with bars:
                show.figure(plots.probabilities(row.answer.probabilities), key="batch_row_probabilities")
        for name, text in (("Prompt", row.row.prompt), ("Response", row.row.response)):
            show.text(name if text.strip() else f"{name}: empty")
            if text.strip():
                show.code(text)
        if row.row.extra:
            with st.expander("The file's other columns"):
                for name, value in row.row.extra.items():
                    show.text(f"{name}: {logic.plain_value(value)}")


def _correction(task: Task, row: Answered, at: int, keeper: Keeper) -> None:
    key = f"batch_right_{task.token}_{at}"
    right = st.pills("Right label", LABELS, default=task.labels.get(at), key=key, wrap=True)
    if right:
        show.sentence(":small[:gray[{meaning}]]", meaning=MEANING[right])

    feedback.draw_name(demo=keeper.demo)

    def keep() -> None:
        if chosen := st.session_state.get(key):
            task.labels[at] = chosen
            st.session_state[NOTE] = feedback.keep_row(keeper, task, row, chosen)

    st.button(
        "Save this label", on_click=keep, key="batch_keep", disabled=right is None or right == task.labels.get(at)
    )
    if note := st.session_state.pop(NOTE, None):
        show.note(note)


def _class_line(row: Answered) -> None:
    label, p = row.answer.label, show.number(row.confidence)
    if label in LABELS:
        show.sentence("**{label}** with probability {p}", label=ClassName(label), p=p)
    else:
        show.text(f"{label} with probability {p}")
