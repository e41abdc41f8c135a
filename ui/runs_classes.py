"""One evaluation class by class: scores with intervals, its confusion matrix, and the exchanges of a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from refusal_core.errors import InputError
from refusal_core.labels import LABELS
from refusal_core.limits import TABLE_ROWS
from refusal_core.metrics.intervals import Rate, format_rate
from refusal_core.plots import runs_tables as plots
from refusal_core.plots import theme
from refusal_core.plots.batch_report import without_n
from refusal_core.runs.view_classes import (
    ClassTable,
    Evaluation,
    Matrix,
    cell_rows,
    class_table,
    evaluations,
    matrix_of,
)
from ui import runs as logic
from ui import show
from ui.runs import Reading
from ui.runs_compare import leading
from ui.runs_state import choose, key, value

CELLS = ("counts", "row shares", "column shares")
CLASSES_DRAWN = 60  # of a matrix
TEXT_SHOWN = 160  # characters of a prompt or response in the table
NONE = "no difference"


def evaluations_of(reading: Reading) -> Mapping[str, Evaluation]:
    """All that say something by class, by key."""
    return reading.once("evaluations", lambda: {one.key: one for one in evaluations(reading.runs)})


def default_evaluation(reading: Reading, found: Mapping[str, Evaluation]) -> str | None:
    """Of the best checkpoint when there is one, of the test split, as it is; else the first."""
    best = {(run.name, run.best.checkpoint) for run in reading.runs if run.best} or leading(reading)

    def rank(one: Evaluation) -> tuple:
        return ((one.run, one.checkpoint) not in best, bool(one.variant), one.split not in ("", "test"))

    return min(found, key=lambda name: rank(found[name]), default=None)


def draw(reading: Reading) -> None:
    """The choice of an evaluation, its table and its matrix."""
    found = evaluations_of(reading)
    if not found:
        st.markdown(
            "No file here scores by class: add a classification report, a confusion matrix, or predictions.jsonl."
        )
        return
    choose("evaluation", list(found), default_evaluation(reading, found))
    chosen = st.selectbox(
        "Evaluation", list(found), format_func=lambda k: found[k].name, key=key("evaluation"), persist_state="session"
    )
    one = found[chosen]
    try:
        rows = _axes(one)
        table = reading.once(("classes", chosen, rows), lambda: class_table(one, rows))
        matrix = reading.once(("matrix", chosen, rows), lambda: matrix_of(one, rows))
    except InputError as error:
        show.problem("This evaluation cannot be scored", str(error))
        return
    if table is None:
        if one.axes_unknown:
            st.markdown("Say above what the rows are.")
        else:
            st.markdown("The file has shares only: no counts, so no intervals and no scores.")
        return
    _scores(table)
    if matrix is None:
        st.markdown(
            ":small[:gray[There is no confusion matrix: predictions.jsonl or a matrix beside it would show one.]]"
        )
        return
    _matrix(reading, one, matrix, found)


def _axes(one: Evaluation) -> str | None:
    """What the rows of the matrix are, asked for where no file says it."""
    if not one.axes_unknown:
        return None
    show.note("The file does not say whether a row is a true or a predicted class; recall and precision hang on it.")
    return st.segmented_control(
        "A row is", ("true", "predicted"), format_func=_axis, key=key("rows"), persist_state="session"
    )


def _axis(name: str) -> str:
    return f"a {name} class"


def _scores(table: ClassTable) -> None:
    if table.accuracy is not None:
        show.sentence("Accuracy {accuracy}.", accuracy=format_rate(table.accuracy))
    rows = [
        {
            "class": row.label,
            "precision": _cell(row.precision),
            "recall": _cell(row.recall),
            "F1": _cell(row.f1),
            "support": row.support,
            "predicted": row.predicted,
        }
        for row in table.rows
    ]
    rows += [
        {
            "class": one.name,
            "precision": _cell(one.precision),
            "recall": _cell(one.recall),
            "F1": _cell(one.f1),
            "support": one.n,
            "predicted": None,
        }
        for one in table.averages
    ]
    listed = "; ".join(
        f"{r['class']} precision {r['precision']}, recall {r['recall']}, F1 {r['F1']}" for r in rows[:40]
    )
    st.dataframe(rows, hide_index=True, key="runs_classes", placeholder="", alt=f"Scores of each class: {listed}.")
    show.sentence(":small[:gray[{how} – is undefined or not stated.]]", how=table.how)


def _cell(rate: Rate) -> str:
    return "–" if rate.value is None else without_n(rate) if rate.interval else f"{rate.value:.4f}"


def _matrix(reading: Reading, one: Evaluation, matrix: Matrix, found: Mapping[str, Evaluation]) -> None:
    whole, labels = matrix.labels, matrix.labels
    if len(labels) > CLASSES_DRAWN:
        labels = matrix.most_confused(CLASSES_DRAWN)
        matrix = matrix.part(labels)
        show.sentence("The {n} of {all} classes with the most wrong answers.", n=CLASSES_DRAWN, all=f"{len(whole):,}")
    for name in ("true", "predicted"):
        if value(name) not in labels:
            st.session_state[key(name)] = None
    others = {NONE: NONE} | {
        k: e.name for k, e in found.items() if k != one.key and not e.axes_unknown and _classes(reading, k, e) == whole
    }
    cells, other = st.columns([4, 5], vertical_alignment="bottom")
    cells.segmented_control("Cells", CELLS, key=key("shares"), persist_state="session", required=True)
    choose("other", list(others), NONE)
    other.selectbox(
        "Less another evaluation", list(others), format_func=others.get, key=key("other"), persist_state="session"
    )
    chosen = None
    if value("true") is not None and value("predicted") is not None:
        chosen = labels.index(value("true")), labels.index(value("predicted"))
    if value("other") != NONE:
        baseline = reading.once(("matrix", value("other"), None), lambda: matrix_of(found[value("other")])).part(labels)
        cells_of = "row shares" if value("shares") == "counts" else value("shares")
        show.figure(plots.matrix_difference(matrix, baseline, cells_of), key="runs_matrix_difference")
        st.markdown(":small[:gray[Points of the share: above 0 the first evaluation has more in the cell.]]")
        return
    _clickable(plots.confusion(matrix, value("shares"), chosen), labels)
    _exchanges(one, labels)


def _classes(reading: Reading, name: str, one: Evaluation) -> Sequence[str] | None:
    """The classes of its matrix, None without one."""
    try:
        found = reading.once(("matrix", name, None), lambda: matrix_of(one))
    except InputError:
        return None
    return found.labels if found else None


def _clickable(drawn: tuple, labels: Sequence[str]) -> None:
    chart, alt = drawn
    theme.ink(chart, dark=st.context.theme.type == "dark")

    def take() -> None:
        if points := st.session_state["runs_matrix"]["selection"]["points"]:
            row, column = round(points[0]["y"]), round(points[0]["x"])
            st.session_state[key("true")], st.session_state[key("predicted")] = labels[row], labels[column]
            st.session_state[key("page")] = 1

    st.plotly_chart(
        chart,
        theme="streamlit",
        key="runs_matrix",
        on_select=take,
        selection_mode="points",
        config={"displayModeBar": False},
        alt=alt,
    )


def _exchanges(one: Evaluation, labels: Sequence[str]) -> None:
    """The items of the cell that was clicked, or named in the two boxes."""
    true, predicted = st.columns(2)
    box = {"persist_state": "session", "placeholder": "Choose a class", "index": None}
    true.selectbox("True class", labels, key=key("true"), **box)
    predicted.selectbox("Predicted class", labels, key=key("predicted"), **box)
    if value("true") is None or value("predicted") is None:
        st.markdown(":small[:gray[Click a cell, or name its two classes, to see what lies in it.]]")
        return
    if one.predictions is None:
        st.markdown("Only counts are known here: predictions.jsonl beside the checkpoint would show the exchanges.")
        return
    rows = cell_rows(one, value("true"), value("predicted"))
    pages = max(1, -(-len(rows) // TABLE_ROWS))
    st.session_state[key("page")] = number = min(value("page"), pages)
    if pages > 1:
        number = st.number_input("Page", 1, pages, key=key("page"), persist_state="session", width=120)
    show.text(f"{len(rows):,} of {value('true')} predicted as {value('predicted')}, the surest first")
    if rows:
        _listed(one, logic.page_of(rows, number))


def _listed(one: Evaluation, rows: Sequence[int]) -> None:
    found = one.predictions
    cells = []
    for row in rows:
        p = None if found.probabilities is None else float(found.probabilities[row, found.predicted[row]])
        texts = found.texts.get(row, {})
        cell = {"id": found.ids[row], "p": p}
        if texts:
            cell |= {name: texts.get(name, "")[:TEXT_SHOWN] for name in ("prompt", "response")}
        cells.append(cell)
    event = st.dataframe(
        cells,
        hide_index=True,
        key="runs_cell",
        on_select="rerun",
        selection_mode="single-row",
        column_config={"p": st.column_config.NumberColumn(format="%.3f", width="small")},
        alt=f"The {len(cells)} items of the chosen cell.",
    )
    selected = [at for at in event["selection"]["rows"] if at < len(rows)]
    if not selected:
        return
    row = rows[selected[0]]
    with st.container(border=True):
        show.text(f"id {found.ids[row]}")
        if found.probabilities is not None:
            order = sorted(range(len(found.labels)), key=lambda k: _order(found.labels[k]))
            show.text("  ".join(f"{found.labels[k]} {theme.number(found.probabilities[row, k])}" for k in order))
        texts = found.texts.get(row, {})
        for name in ("prompt", "response", "error"):
            if texts.get(name):
                show.text(name.capitalize())
                show.code(texts[name])
        if not texts:
            st.markdown(":small[:gray[The file holds no texts of it.]]")


def _order(label: str) -> tuple[int, str]:
    return (LABELS.index(label) if label in LABELS else len(LABELS), label)
