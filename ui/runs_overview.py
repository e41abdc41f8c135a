"""What the Overview says of the Training runs page, with a sample to try it on."""

from __future__ import annotations

import streamlit as st

from refusal_core.runs.samples import samples
from ui.frame import PAGES
from ui.runs import SAMPLE


def draw() -> None:
    """Its question, and a link that opens the fullest sample."""
    entry = PAGES["runs"]
    st.subheader(entry.title, anchor=False)
    st.markdown(
        "The files that a training leaves, as they are: curves with what diverged, scores by class with intervals, "
        "checkpoints against a baseline item by item, and where two files of one run contradict each other."
    )
    st.page_link(
        entry.file,
        label=":blue[Open a training that comes with the app →]",
        query_params={"runs": f"{SAMPLE}:{samples()[0].key}"},
    )
