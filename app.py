"""Overview: what each page answers with a sample to try it on, and what the app would answer with."""

from __future__ import annotations

import streamlit as st

from refusal_core import limits
from refusal_core.classifier import matcher
from refusal_core.errors import InputError
from refusal_core.samples import SAMPLES
from refusal_core.versions import versions
from ui import cache, checkpoints, runs_overview, scorecard_overview, search, show, state
from ui.checkpoints import Choice
from ui.frame import PAGES, Shared, frame
from ui.show import ClassName
from ui.state import View

SHOWN_SAMPLE = SAMPLES["break-in"]
# A larger checkpoint is not hashed just to open this page; its digest is known once it is loaded.
HASHED_BYTES = 500 * limits.MB


def page(shared: Shared) -> None:
    _playground()
    runs_overview.draw()
    scorecard_overview.draw()
    _study()
    _search()
    left, right = st.columns(2, gap="large")
    with left:
        _checkpoint(shared)
        _versions()
    with right:
        _limits()


def _playground() -> None:
    entry = PAGES["playground"]
    st.subheader(entry.title, anchor=False)
    st.markdown(
        "One prompt with its response: its class with all five probabilities, refused or not, what was read of a "
        "long text, and what a phrase matcher would have said."
    )
    with st.container(border=True, gap="small"):
        left, right = st.columns([2, 3])
        with left:
            st.markdown(":gray[Prompt]")
            show.text(SHOWN_SAMPLE.prompt)
        with right:
            st.markdown(":gray[Response]")
            show.text(SHOWN_SAMPLE.response)
        show.sentence(
            "Written as {label}; the phrase matcher says {matched}. What does the checkpoint say?",
            label=ClassName(SHOWN_SAMPLE.label),
            matched=ClassName(matcher.match(SHOWN_SAMPLE.response).label),
        )
        st.page_link(
            entry.file,
            label=":blue[Classify this sample in the Playground →]",
            query_params={"sample": SHOWN_SAMPLE.key},
        )
        st.page_link(
            entry.file,
            label=":blue[Classify a batch, about sixty exchanges of three domains →]",
            query_params=state.to_params(View(batch=state.SAMPLE_BATCH)),
        )


def _study() -> None:
    entry = PAGES["study"]
    st.subheader(entry.title, anchor=False)
    st.markdown(
        "Two activation exports, one to fit a direction on and one of other categories to test it on: the held-out "
        "score with its interval over categories, what chance gives, what is called wrongly, and what none of it shows."
    )
    st.page_link(
        entry.file,
        label=":blue[Study the sample, 192 prompts in a small instruct model →]",
        query_params={"study": "sample"},
    )


def _search() -> None:
    entry = PAGES["search"]
    st.subheader(entry.title, anchor=False)
    st.markdown(
        "A local search on a simulated policy whose best sequence is known exactly: how seeds spread, how budget and "
        "fan-out trade, and how the best of many noisy scores flatters itself. It says nothing about a real model."
    )
    st.page_link(
        entry.file,
        label=":blue[Run it with noisy scores →]",
        query_params=search.to_params(search.PRESETS["noisy"].settings),
    )


def _checkpoint(shared: Shared) -> None:
    st.subheader("Checkpoint", anchor=False)
    if shared.choice is None:
        show.text(shared.choice_problem or "None is named yet: name one in the sidebar.")
        return
    choice, info = shared.choice, cache.loaded_info(shared.choice)
    show.text(choice.shown)
    kind = {"starter": "comes with the app", "directory": "a folder below a data root", "hub": "from the hub"}
    rows = [
        ("kind", kind[choice.kind]),
        ("state", "loaded" if info else "not loaded yet; the first classification loads it"),
        ("size", f"{checkpoints.size_sentence(choice)}" + (f", {info.parameters:,} parameters" if info else "")),
    ]
    if choice.kind == "hub":
        rows.append(("revision", info.revision if info else "resolved when it is loaded"))
    if info:
        rows.append(("reads", f"{info.max_tokens:,} tokens of prompt and response together"))
    show.facts(("property", "value"), rows)
    try:
        digest = info.digest if info else _digest(choice)
    except InputError as error:
        show.problem("This checkpoint cannot be loaded", str(error))
        return
    if digest:
        st.markdown("Digest (SHA-256 of its configuration, tokenizer and weights)")
        show.code(digest)


def _digest(choice: Choice) -> str | None:
    """Without loading; None when that would take long, or the files are not here."""
    return cache.folder_digest(choice) if 0 < choice.size() <= HASHED_BYTES else None


def _limits() -> None:
    st.subheader("Limits", anchor=False)
    rows = [
        ("prompt or response", f"{limits.TEXT_CHARACTERS:,} characters"),
        ("messages of a chat", f"{limits.MESSAGES_PER_CHAT:,}"),
        ("tokens of a pair, at most", f"{limits.MAX_TOKENS:,}"),
        ("checkpoint", limits.show_bytes(limits.CHECKPOINT_BYTES)),
        ("line of a JSONL or CSV file", limits.show_bytes(limits.LINE_BYTES)),
        ("upload", limits.show_bytes(limits.UPLOAD_BYTES)),
        ("rows of a batch on a page", f"{limits.BATCH_ROWS:,}"),
        ("texts of a batch, together", f"{limits.BATCH_CHARACTERS:,} characters"),
        ("upload in demo mode", limits.show_bytes(limits.DEMO_UPLOAD_BYTES)),
        ("rows of a batch in demo mode", f"{limits.DEMO_BATCH_ROWS:,}"),
        ("activation file below a data root", limits.show_bytes(limits.ACTIVATION_FILE_BYTES)),
        ("activation file in demo mode", limits.show_bytes(limits.DEMO_STUDY_BYTES)),
        ("text in a share link, each", f"{limits.SHARED_TEXT_CHARACTERS:,} characters"),
        ("files listed below the data roots", f"{limits.FILES_LISTED:,}"),
    ]
    show.facts(("what", "limit"), rows)


def _versions() -> None:
    st.subheader("Versions", anchor=False)
    show.facts(("package", "version"), list(versions().items()))


frame("overview", page)
