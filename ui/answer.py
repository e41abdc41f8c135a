"""Draws a Playground result: the answer first, then what stands beside it, then the detail in tabs."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from refusal_core.errors import one_line
from refusal_core.labels import LABELS, MEANING, Fold
from refusal_core.limits import SHARED_TEXT_CHARACTERS
from refusal_core.plots import playground as plots
from refusal_core.reports import to_json
from refusal_core.samples import Sample
from ui import playground, show, state
from ui.checkpoints import Choice
from ui.playground import Problem, Result, Turn
from ui.show import ClassName
from ui.state import View


def draw_problem(problem: Problem, *, earlier: bool) -> None:
    """Why there is no new answer; `earlier` says that the last one stays below."""
    show.problem("Not classified", problem.sentence)
    if problem.reasoning:
        _reasoning(problem.reasoning)
    if earlier:
        st.markdown("The last result stays below.")


def draw_answer(result: Result, sample: Sample | None, fold: Fold) -> None:
    """The class with its probability, refused or not, the matcher's verdict, and the five bars."""
    said = result.turn.said
    if result.asked.note:
        show.note(result.asked.note)
    words, bars = st.columns([6, 5], gap="medium")
    with words, st.container(gap="xsmall"):
        show.class_heading(said.label, said.probabilities[said.label])
        if said.label in MEANING:
            show.sentence("{meaning}", meaning=MEANING[said.label])
        _verdict(result, fold)
        _matcher(result, fold)
        if sample and sample.label == said.label:
            show.sentence(":small[This sample was written as {label}.]", label=ClassName(sample.label))
        elif sample:
            show.sentence(
                ":small[This sample was written as {label}; the checkpoint reads it otherwise.]",
                label=ClassName(sample.label),
            )
    with bars:
        show.figure(plots.probabilities(said.probabilities), key="playground_probabilities")
    for remark in playground.remarks(result):
        show.note(remark)
    if said.reasoning:
        _reasoning(said.reasoning)


def draw_other_choice(result: Result, now: Choice | None, again: Callable[[], None]) -> None:
    """Says that the result is of a checkpoint that is no longer the chosen one."""
    if now is None:
        show.note(f"This is the answer of the checkpoint {result.choice.shown}; the one named now cannot be used.")
    else:
        show.note(f"This is the answer of the checkpoint {result.choice.shown}; {now.shown} is chosen now.")
        st.button("Classify again", on_click=again, key="playground_again")


def draw_every_turn(result: Result, fold: Fold, ask: Callable[[], None]) -> None:
    """The table of all assistant turns of a chat, or the button that asks for it."""
    if not result.every_turn:
        st.button("Classify every assistant turn of this chat", on_click=ask, key="playground_every_turn")
        return
    st.subheader("Every assistant turn", anchor=False)
    st.dataframe(
        [_turn_row(turn, fold) for turn in result.every_turn],
        hide_index=True,
        column_config={"probability": st.column_config.TextColumn(alignment="right")},
        alt="Class, probability and verdict of each assistant turn of the pasted chat, with the start of its response.",
    )


def draw_detail(result: Result, sample: Sample | None, fold: Fold) -> None:
    """Tabs: how it was read, what the classes mean, the JSON row, the command that gives the same, the link."""
    reading, classes, as_json, command, link = st.tabs(["Reading", "Classes", "JSON", "Command", "Link"])
    with reading:
        with st.container(gap="xsmall"):
            show.text(playground.reading_sentence(result.turn.said.tokens))
            show.text(playground.time_sentence(result))
            show.text(f"Checkpoint: {result.choice.shown}, digest {result.info.digest[:12]}.")
        for name, text in (("Prompt", result.turn.exchange.prompt), ("Response", result.turn.exchange.response)):
            show.text(f"{name} as it was given" if text.strip() else f"{name}: empty")
            if text.strip():
                show.code(text)
    with classes:
        show.facts(("class", "a response that"), [(ClassName(label), MEANING[label]) for label in LABELS])
    with as_json:
        row = to_json(playground.row(result, result.turn), indent=2)
        show.code(row, "json")
        show.download("Download JSON", row + "\n", "classification.json", key="json_row")
    with command:
        line, content = playground.command(result, result.turn)
        if content:
            st.markdown("The texts are too long for a shell line: save them to a file first.")
            name = playground.COMMAND_FILE
            show.download("Download exchange.jsonl", content, name, key="exchange_file")
        st.markdown("The same as this command, in the app's folder:")
        show.code(line)
    with link:
        _share(result, sample, fold)


def link_view(result: Result, sample: Sample | None, fold: Fold) -> View:
    """What the address bar and share links hold of a result."""
    return View(playground.link_checkpoint(result), fold.key, sample.key if sample else None)


def _verdict(result: Result, fold: Fold) -> None:
    found = playground.verdict(result.turn.said, fold)
    if found.refused is None:
        show.sentence("Refused is not defined: the checkpoint lacks classes of the fold {fold}.", fold=fold.name)
        return
    p = show.number(found.probability)
    if found.refused:
        show.sentence("**Refused** under {fold}, with probability {p}.", fold=fold.name, p=p)
    else:
        show.sentence("**Not refused** under {fold}; the probability of refused is {p}.", fold=fold.name, p=p)
    if found.torn:
        st.markdown("Close: the most probable class is on the one side, the sum over the refused classes on the other.")


def _matcher(result: Result, fold: Fold) -> None:
    said, matched = result.turn.said, result.turn.matched
    found = f"found “{matched.phrase}”" if matched.phrase else "no phrase found"
    show.sentence(
        "Phrase matcher: {label}, {found}. {agreement}",
        label=ClassName(matched.label),
        found=found,
        agreement=playground.agreement(said, matched, fold),
    )


def _reasoning(reasoning: str) -> None:
    with st.expander("Reasoning, set aside and not classified"):
        show.code(reasoning)


def _turn_row(turn: Turn, fold: Fold) -> dict[str, object]:
    said, refused = turn.said, playground.verdict(turn.said, fold).refused
    return {
        "turn": turn.exchange.id,
        "class": said.label or f"none: {said.error}",
        "probability": show.number(said.probabilities[said.label]) if said.label else None,
        "refused": {True: "refused", False: "not refused", None: "not defined"}[refused],
        "phrase matcher": turn.matched.label,
        "response": one_line(turn.exchange.response, 120),
    }


def _share(result: Result, sample: Sample | None, fold: Fold) -> None:
    view, exchange = link_view(result, sample, fold), result.turn.exchange
    if view.checkpoint is None:
        st.markdown("The link leaves the checkpoint out: it is a folder on this machine.")
    if result.asked.chat:
        st.markdown("Of a pasted chat a link restores the exchange above, not the chat with its other turns.")
    fits = state.can_share(exchange.prompt, exchange.response)
    if not sample:
        with_text = st.checkbox(
            "Include the text: whoever has the link can read it",
            key=state.SHARE_TEXT,
            persist_state="session",
            disabled=not fits,
        )
        if not fits:
            show.sentence("A link holds at most {most} characters of each text.", most=f"{SHARED_TEXT_CHARACTERS:,}")
        elif with_text:
            view = View(view.checkpoint, view.fold, None, (exchange.prompt, exchange.response))
        else:
            st.markdown("Without it the link restores checkpoint and fold, not the text.")
    show.code(state.link(view, st.context.url))
