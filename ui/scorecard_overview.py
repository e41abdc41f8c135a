"""What the Overview says of the Scorecard page."""

from __future__ import annotations

import streamlit as st

from ui import scorecard, scorecards
from ui.frame import PAGES
from ui.scorecard import Link


def draw() -> None:
    """What the page answers, with its samples at one click."""
    entry = PAGES["scorecard"]
    st.subheader(entry.title, anchor=False)
    st.markdown(
        "A suite of assertions against checkpoints, or against the answers of language models: pass, fail, or "
        "inconclusive with the interval that decides it, what would decide, and the exit code for a release gate."
    )
    there = scorecards.sample_names()
    if "starter" in there:
        st.page_link(
            entry.file,
            label=":blue[Hold three checkpoints of the starter to a release gate →]",
            query_params=scorecard.to_params(Link(suite="sample:starter")),
        )
    if "answers" in there:
        st.page_link(
            entry.file,
            label=":blue[Compare how two language models refuse →]",
            query_params=scorecard.to_params(Link(suite="sample:answers")),
        )
