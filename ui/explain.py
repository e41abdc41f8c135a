"""Which parts of a response drove its answer, on demand: a figure and a table, never marked-up text."""

from __future__ import annotations

import streamlit as st

from refusal_core.classifier.attribution import Attribution, attribute
from refusal_core.errors import RefusalCoreError, one_line
from refusal_core.jobs import Job
from refusal_core.plots import batch as plots
from ui import cache, show
from ui.playground import Result
from ui.show import ClassName, number

KEPT = "explain_kept"  # the turn that was explained, with its Attribution
SPAN_SHOWN = 300  # characters in the table


def draw(result: Result) -> None:
    """The button that asks for it, or the explanation of the answer on screen."""
    with st.expander("Which parts drove this answer"):
        turn, found = st.session_state.get(KEPT, (None, None))
        if turn is not result.turn:
            st.markdown("Each sentence is left out once and the rest classified again.")
            if not st.button("Explain", key="explain_go"):
                return
            found = _explain(result)
        if found:
            _draw(found)


def _explain(result: Result) -> Attribution | None:
    bar = st.progress(0.0, "Leaving one part out at a time")
    job = Job(show=lambda now: bar.progress(min(1.0, now.done / (now.total or 1)), f"Leaving out: {now}"))
    try:
        found = attribute(cache.load_classifier(result.choice).classifier, result.turn.exchange, job)
    except RefusalCoreError as error:
        show.problem("Not explained", str(error))
        return None
    finally:
        bar.empty()
    st.session_state[KEPT] = (result.turn, found)
    return found


def _draw(found: Attribution) -> None:
    label = found.answer.label
    if not found.strongest:
        st.markdown("The response is one piece: nothing is left to classify without it.")
        return
    top = found.strongest[0]
    if label in plots.theme.COLOUR:
        show.sentence(
            "Without its strongest part the probability of {label} changes from {before} to {after}.",
            label=ClassName(label),
            before=number(found.answer.probabilities[label]),
            after=number(found.answer.probabilities[label] - top.drop),
        )
    show.figure(plots.spans(found), key="explain_spans")
    rows = [
        {
            "part": place,
            "drop": span.drop,
            "answer without it": span.label or "nothing left to classify",
            "text": one_line(span.text, SPAN_SHOWN),
        }
        for place, span in enumerate(found.spans, start=1)
    ]
    st.dataframe(
        rows,
        hide_index=True,
        key="explain_table",
        column_config={
            "drop": st.column_config.NumberColumn(format="%+.3f"),
            "text": st.column_config.TextColumn(width="large"),
        },
        alt="Each part of the response with the drop in probability without it, the answer without it, and its text.",
    )
    st.markdown(":small[Parts that say the same stand in for each other and show small drops.]")
