"""Draws a direction study: the answer, its warnings, and the figures that carry it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from refusal_core.direction.intervals import LeaveOneOut, NotAvailable
from refusal_core.direction.record import Record
from refusal_core.direction.scores import TestScores
from refusal_core.direction.splits import SplitComparison
from refusal_core.limits import GROUPS_SHOWN
from refusal_core.plots import study as plots
from refusal_core.plots import study_categories as by_category
from refusal_core.plots import study_geometry as geometry_plots
from ui import show, state
from ui import study as logic
from ui.show import Strong

NULL_NAMES = {
    "shuffled_labels": "labels shuffled",
    "shuffled_categories": "whole categories shuffled",
    "within_categories": "shuffled within categories",
}


def draw_answer(record: Record) -> None:
    """The answer in one sentence, what it rests on, and every warning."""
    result, words = record.study, logic.meaning(record)
    show.headline("{answer}", answer=result.headline)
    with st.container(gap="xsmall"):
        show.sentence("{rests} Label 1 says that {title}.", rests=logic.rests_on(result), title=words.title)
        if isinstance(result.test, TestScores):
            show.sentence("{scores}.", scores="; ".join(f"{name} {value}" for name, value in logic.scores_line(result)))
        show.text(record.title)
    for warning in result.warnings:
        show.note(warning)


def draw_figures(record: Record) -> None:
    """Projections and chance side by side, then the two kinds of wrong calls by category."""
    result, examples, words = record.study, record.examples, logic.meaning(record)
    if not isinstance(result.test, TestScores):
        _draw_splits(result.split_comparison)
        return
    left, right = st.columns(2, gap="medium")  # a row of its own: on a phone they stand one below the other
    with left:
        st.subheader("Projections of the test examples", anchor=False)
        _projections(record)
    with right:
        st.subheader("What there would be without a direction", anchor=False)
        if plots.distributions(result):
            show.figure(plots.nulls(result), key="study_nulls")
        _why_no_null(record)
    st.subheader("Wrong calls by category", anchor=False)
    left, right = st.columns(2, gap="medium")
    counts = result.inputs["test"]["label_counts"]
    for place, kind, label in ((left, "false", "0"), (right, "missed", "1")):
        if not counts[label]:
            continue
        with place:
            title, meant = getattr(words, f"{kind}_rate"), getattr(words, f"{kind}_means")
            show.sentence("{title}: {meant}.", title=Strong(title), meant=meant)
            show.figure(by_category.forest(result.test, kind, words), key=f"study_forest_{kind}")
    if len(examples.categories) > GROUPS_SHOWN:
        show.sentence(":small[The {n} largest categories; the table has all.]", n=GROUPS_SHOWN)


def _projections(record: Record) -> None:
    examples = record.examples
    chosen = st.session_state[state.STUDY_CATEGORY]
    if chosen not in examples.categories:
        chosen = st.session_state[state.STUDY_CATEGORY] = None
    st.selectbox(
        "Category",
        examples.categories,
        key=state.STUDY_CATEGORY,
        persist_state="session",
        placeholder="All categories",
        label_visibility="collapsed",
    )
    rows = None if chosen is None else np.flatnonzero(examples.code == examples.categories.index(chosen))
    show.figure(plots.projections(examples, logic.meaning(record), rows), key="study_projections")
    st.markdown(":small[Each bar is a range of projections; the strong colour is on the wrong side of the threshold.]")


def _why_no_null(record: Record) -> None:
    for name, found in record.study.nulls.items():
        if isinstance(found, NotAvailable):
            show.text(f"{NULL_NAMES[name].capitalize()}: not available, {found.not_available}.")
    st.markdown(
        ":small[Balanced accuracy when labels carry nothing. Random directions are a floor: where a few dimensions are "
        "huge, they all do well.]"
    )


def draw_roc(record: Record) -> None:
    """The ROC, and how far the threshold travelled."""
    result = record.study
    if not isinstance(result.test, TestScores) or result.test.auroc is None:
        st.markdown("A ROC needs test examples of both labels.")
        if isinstance(result.test, TestScores):
            show.text(logic.auroc_interval_words(result))
        return
    left, right = st.columns(2, gap="medium")
    with left:
        show.figure(plots.roc_curve(record.examples, result, logic.meaning(record)), key="study_roc")
        show.text(logic.auroc_interval_words(result))
    with right:
        shift = result.threshold_shift
        if shift.shift is None:
            show.sentence("How far the threshold travelled is undefined: {reason}.", reason=shift.reason)
            return
        show.facts(
            ("threshold and separation", "value"),
            [
                ("midpoint of the test file, from the threshold, in within-class sd", f"{shift.shift:+.2f}"),
                ("distance of the class means (d′), in the same sd", f"{shift.d_prime:.2f}"),
                ("balanced accuracy at the test file's own midpoint", f"{shift.oracle_balanced_accuracy:.3f}"),
            ],
            right=("value",),
        )
        st.markdown(
            ":small[A high AUROC with a low balanced accuracy means that the threshold did not travel, not that the "
            "direction is wrong. The file's own midpoint looks at test labels: it is no result.]"
        )


def draw_left_out(record: Record) -> None:
    """Whether one category carries the score, and the means over categories."""
    result = record.study
    if not isinstance(result.leave_one_category_out, LeaveOneOut) or result.test.balanced_accuracy is None:
        st.markdown("This needs a test file with both labels.")
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        if result.leave_one_category_out.low is None:
            st.markdown("Without any one category a label is missing.")
        else:
            show.figure(
                by_category.left_out(result.leave_one_category_out, result.test.balanced_accuracy), key="study_left_out"
            )
    with right:
        macro = result.macro_average
        if macro.balanced_accuracy is not None:
            show.sentence(
                "With every category counted once balanced accuracy is {macro}, {difference} from that over rows.",
                macro=f"{macro.balanced_accuracy:.3f}",
                difference=f"{macro.difference:+.3f}",
            )
        st.markdown(
            ":small[The same direction, scored without the rows of one category. The dashed line is the score with "
            "all. The figure shows the categories that move it most.]"
        )


def draw_splits(record: Record) -> None:
    """What leaving whole categories out costs against leaving out random rows."""
    _draw_splits(record.study.split_comparison)


def _draw_splits(found: SplitComparison | NotAvailable) -> None:
    if isinstance(found, NotAvailable):
        show.text(f"Splits are not compared: {found.not_available}.")
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        show.figure(by_category.splits(found), key="study_splits")
        st.markdown(":small[● its category left out of the fit; ■ random rows left out.]")
    with right:
        rows = [
            ("categories left out", f"{found.left_out_balanced_accuracy:.3f}"),
            ("random rows left out", f"{found.random_balanced_accuracy:.3f}"),
            ("difference", f"{found.difference:+.3f}"),
        ]
        if not isinstance(found.interval, NotAvailable):
            interval = found.interval
            rows.append(("its 95% interval", f"{interval.low:+.3f} to {interval.high:+.3f}"))
            rows.append(("p-value of no difference", f"{interval.p_value:.2g}"))
        show.facts(("balanced accuracy", "value"), rows, right=("value",))
        show.sentence(
            ":small[The same {n} rows, called by directions that were fitted without them: {k} folds by category, and "
            "{repeats} random partitions into folds of the same sizes. A random split also tests what is known of the "
            "categories.]",
            n=f"{found.examples:,}",
            k=found.categories,
            repeats=found.repeats,
        )


def draw_geometry(record: Record) -> None:
    """How many dimensions carry the direction, what is left without the largest, and other directions."""
    result = record.study
    if isinstance(result.geometry, NotAvailable):
        show.text(f"No geometry: {result.geometry.not_available}.")
        return
    left, right = st.columns([2, 3], gap="medium")
    found, d = result.geometry, result.inputs["train"]["dimensions"]
    with left:
        show.figure(geometry_plots.shares(found), key="study_shares")
        show.sentence(
            "Of {d} dimensions about {n} carry the variance (participation ratio).",
            d=f"{d:,}",
            n=f"{found.participation_ratio:,.1f}",
        )
        st.markdown(":small[Blue: share of the direction's length; grey: of the variance of the scores.]")
    with right:
        header = ("direction", "balanced accuracy", "AUROC", "cosine")
        show.facts(header, geometry_plots.variant_rows(result), right=header[1:])
        st.markdown(
            ":small[Where a scaled or shrunk-covariance direction does much better, large dimensions drown the plain "
            "one. Where one dimension carries the score, look at that dimension first.]"
        )


def draw_not_shown(record: Record) -> None:
    """What nobody should read into it."""
    st.subheader("What this does not show", anchor=False)
    for said in logic.does_not_show(record.study):
        show.sentence("- {said}", said=said)
