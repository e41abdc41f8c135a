"""Draws a scored batch: the refused share first, then shares by class and group, then rows, scores and downloads."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from refusal_core.classifier.batch import Batch, Summary
from refusal_core.labels import Fold
from refusal_core.limits import GROUPS_LISTED, TABLE_ROWS
from refusal_core.metrics.intervals import format_rate
from refusal_core.plots import batch as plots
from refusal_core.plots.batch_report import batch_report, without_n
from ui import batch as logic
from ui import show, state
from ui.batches import SAMPLE, Task
from ui.checkpoints import Choice

ERRORS_SHOWN = 3  # sentences above the tabs; all are in a tab


def draw_other_choice(task: Task, now: Choice | None, again: Callable[[Task], None]) -> None:
    """Says that the batch is of a checkpoint that is no longer the chosen one."""
    show.note(
        f"These are the answers of the checkpoint {task.choice.shown}"
        + (f"; {now.shown} is chosen now." if now else ".")
    )
    if now:
        st.button("Score these rows again", on_click=again, args=(task,), key="batch_again")


def draw_answer(task: Task, batch: Batch, summary: Summary, fold: Fold) -> None:
    """The refused share in the largest type, and what stands beside it."""
    if logic.refused_is_defined(batch, fold):
        show.headline("Refused {rate}", rate=format_rate(summary.refused))
    else:
        show.headline("{n} rows", n=f"{len(batch.rows):,}")
        show.sentence("Refused is not defined: the checkpoint lacks classes of the fold {fold}.", fold=fold.name)
    with st.container(gap="xsmall"):
        show.text(f"{task.name}, scored by {task.choice.shown}: {logic.how_it_went(task)}")
        show.sentence(
            "Refused means {fold}. The phrase matcher says {matcher}; the two disagree on {n} rows.",
            fold=fold.name,
            matcher=format_rate(summary.refused_by_matcher),
            n=f"{len(summary.disagreements):,}",
        )
        if summary.report:
            show.sentence(
                "Against the labels: accuracy {accuracy}, macro F1 {f1}.",
                accuracy=format_rate(summary.report.accuracy),
                f1=f"{summary.report.macro.f1:.2f}",
            )
    for name in batch.checkpoint.notes:
        show.note(name)
    _strangers(summary)
    if summary.unclassified:
        show.note(f"{summary.unclassified:,} of {len(batch.rows):,} rows could not be classified; they are in no rate.")
        for row in logic.bad_rows(batch)[:ERRORS_SHOWN]:
            show.text(f"Line {row['line']}: {row['why']}")
        if summary.unclassified > ERRORS_SHOWN:
            st.markdown("The others are under Not classified.")


def group_of(batch: Batch) -> str | None:
    """The column that the refused share is grouped by: the one chosen, or the first."""
    options = list(batch.columns)
    if st.session_state[state.BATCH_GROUP] not in options:
        st.session_state[state.BATCH_GROUP] = options[0] if options else None
    return st.session_state[state.BATCH_GROUP]


def draw_shares(batch: Batch, summary: Summary, fold: Fold) -> None:
    """Two figures side by side, each with its numbers in a table."""
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("Classes", anchor=False)
        show.figure(plots.class_shares(summary.shares), key="batch_shares")
        with st.expander("As a table"):
            _shares_table(summary)
    with right:
        st.subheader("Groups", anchor=False)
        if batch.columns:
            options = list(batch.columns)
            st.selectbox("Refused share by", options, key=state.BATCH_GROUP, persist_state="session", width=260)
        if not summary.groups:
            st.markdown(":gray[The file has no other column to group by: add one, such as category or model.]")
        elif not logic.refused_is_defined(batch, fold):
            st.markdown(":gray[Refused is not defined for this checkpoint under this fold.]")
        else:
            drawn = plots.refused_by_group(summary.groups, summary.group_by, fold.name)
            show.figure(drawn, key="batch_groups")
            with st.expander("As a table"):
                _groups_table(summary)


def draw_scores(summary: Summary) -> None:
    """Per class and confusion matrix; without labels what would bring them."""
    if summary.report is None:
        st.markdown(
            "The file has no labels of the checkpoint's classes: map a label column, or correct rows, to see scores."
        )
        return
    report = summary.report
    rows = [
        {
            "class": c.label,
            "labelled": c.support,
            "answered": c.predicted,
            "precision": without_n(c.precision),
            "recall": without_n(c.recall),
            "F1": without_n(c.f1),
        }
        for c in report.classes
    ]
    listed = "; ".join(f"{c.label} precision {c.precision}, recall {c.recall}, F1 {c.f1}" for c in report.classes)
    st.dataframe(rows, hide_index=True, key="batch_scores", alt=f"Scores of each class with 95% intervals: {listed}.")
    show.sentence(
        ":small[Precision is over the answered rows, recall over the labelled, F1 over both together, with 95% "
        "intervals. Macro F1 {macro}, weighted F1 {weighted}, n = {n}.]",
        macro=f"{report.macro.f1:.3f}",
        weighted=f"{report.weighted.f1:.3f}",
        n=f"{report.n:,}",
    )
    st.subheader("Label against answer", anchor=False)
    show.figure(plots.confusion(report), key="batch_confusion")


def draw_errors(batch: Batch) -> None:
    """Rows without an answer, with line and reason."""
    if not batch.errors:
        st.markdown("Every row was classified.")
        return
    found = logic.bad_rows(batch)
    if len(found) > TABLE_ROWS:
        show.sentence("The first {n}; all are in the downloads.", n=f"{TABLE_ROWS:,}")
    st.dataframe(
        found[:TABLE_ROWS],
        hide_index=True,
        key="batch_errors",
        column_config={"why": st.column_config.TextColumn(width="large")},
        alt="Rows that could not be classified, with line number, id and reason.",
    )


def draw_downloads(task: Task, batch: Batch, summary: Summary, fold: Fold) -> None:
    """Three files, made when they are clicked, and the command that gives the same."""
    with st.container(horizontal=True):
        show.download("Download CSV", lambda: logic.as_csv(batch, task.labels, fold), "batch.csv", key="batch_csv")
        show.download("Download JSONL", lambda: logic.as_jsonl(batch), "answers.jsonl", key="batch_jsonl")
        show.download(
            "Download HTML report",
            lambda: batch_report(
                batch, summary, name=task.name, command=logic.command(task), corrections=len(task.labels)
            ),
            "batch.html",
            key="batch_html",
        )
    if task.path:
        st.markdown("The JSONL is what this command writes in the app's folder:")
    else:
        st.markdown("The JSONL is what this command writes in the app's folder, with the file there:")
    show.code(logic.command(task))
    if task.kind == SAMPLE:
        from refusal_core.samples import BATCH_SAMPLE, batch_sample

        sample = batch_sample().decode()
        show.download("Download the sample", sample, BATCH_SAMPLE, key="batch_sample_file")


def _strangers(summary: Summary) -> None:
    if summary.other_labels:
        names = ", ".join(f'"{label}" ({n:,})' for label, n in list(summary.other_labels.items())[:5])
        show.note(f"Labels that are none of the checkpoint's classes are left out of the scores: {names}.")


def _shares_table(summary: Summary) -> None:
    rows = [(share.label, share.count, format_rate(share.rate)) for share in summary.shares]
    show.facts(("class", "answers", "share"), rows, right=("answers",))


def _groups_table(summary: Summary) -> None:
    groups = summary.groups[:GROUPS_LISTED]
    st.dataframe(
        [{"group": g.group, "n": g.refused.n, "refused": g.count, "share": format_rate(g.refused)} for g in groups],
        hide_index=True,
        key="batch_groups_table",
        alt="Each group with its number of answers, how many are refused, and the share with its interval.",
    )
    if len(summary.groups) > len(groups):
        show.sentence("The {n} largest groups.", n=f"{len(groups):,}")
