"""Whether a checkpoint's probabilities mean what they say, and what a least confidence would cost."""

from __future__ import annotations

import streamlit as st

from refusal_core.errors import InputError
from refusal_core.metrics.calibration import MIN_ITEMS, calibration, thresholds
from refusal_core.metrics.items import Items
from refusal_core.plots import runs_tables as plots
from refusal_core.runs.view_classes import Evaluation, items_of
from ui import show
from ui.runs import Reading
from ui.runs_classes import default_evaluation, evaluations_of
from ui.runs_state import choose, key, value

EVERY = "all classes"


def draw(reading: Reading) -> None:
    """Reliability and thresholds of one evaluation that has probabilities."""
    found = {
        k: e for k, e in evaluations_of(reading).items() if e.predictions and e.predictions.probabilities is not None
    }
    if not found:
        st.markdown(
            "No predictions with probabilities are here: predictions.jsonl beside a checkpoint would show calibration."
        )
        return
    choose("calibrated", list(found), default_evaluation(reading, found))
    chosen = st.selectbox(
        "Evaluation", list(found), format_func=lambda k: found[k].name, key=key("calibrated"), persist_state="session"
    )
    try:
        items = reading.once(("items", chosen), lambda: items_of(found[chosen]))
        calibrated = reading.once(("calibration", chosen), lambda: calibration(items))
    except InputError as error:
        show.problem("Its probabilities cannot be judged", str(error))
        return
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("Reliability", anchor=False)
        show.sentence("ECE {ece}. Brier score {brier}, log loss {loss}.",
                      ece=calibrated.ece, brier=calibrated.brier, loss=calibrated.log_loss)  # fmt: skip
        _too_sure(calibrated.too_sure)
        if not calibrated.enough:
            show.sentence("Below {n} items ECE says more about n than about the model.", n=MIN_ITEMS)
        show.figure(plots.reliability(calibrated), key="runs_reliability")
    with right:
        st.subheader("A least confidence", anchor=False)
        _thresholds(reading, chosen, found[chosen], items)


def _too_sure(by: float | None) -> None:
    if by is not None:
        word = "surer than right" if by >= 0 else "less sure than right"
        show.sentence("On average {word} by {points} points.", word=word, points=f"{100 * abs(by):.1f}")


def _thresholds(reading: Reading, name: str, one: Evaluation, items: Items) -> None:
    at, of = st.columns([2, 3], vertical_alignment="bottom")
    at.number_input("Confidence", 0.0, 0.99, step=0.05, format="%.2f", key=key("threshold"), persist_state="session")
    choose("label", [EVERY, *items.labels], EVERY)
    of.selectbox("Of", [EVERY, *items.labels], key=key("label"), persist_state="session")
    label = None if value("label") == EVERY else value("label")
    points = reading.once(("thresholds", name, label), lambda: thresholds(items, label=label))
    here = min(points, key=lambda point: abs(point.threshold - value("threshold")))
    show.sentence("Answers below {at} withheld: {share}.", at=f"{here.threshold:.2f}", share=here.abstained)
    if label is None:
        show.sentence("Accuracy of the rest {accuracy}.", accuracy=here.accuracy)
    else:
        show.sentence("Precision {precision}, recall {recall}; what is withheld counts as missed.",
                      precision=here.precision, recall=here.recall)  # fmt: skip
    show.figure(plots.thresholds(points, label, value("threshold")), key="runs_thresholds")
