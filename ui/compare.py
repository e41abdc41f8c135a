"""A second checkpoint beside the first: on one exchange, and over a batch with agreement and flips."""

from __future__ import annotations

import streamlit as st

from refusal_core.classifier.batch import Batch
from refusal_core.classifier.compare import Comparison, compare
from refusal_core.errors import InputError, RefusalCoreError, one_line
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS, Fold
from refusal_core.limits import BATCH_ROWS, TABLE_ROWS
from refusal_core.metrics.intervals import format_rate
from refusal_core.roots import DataRoots
from ui import batch_inputs, cache, checkpoints, show, state
from ui.batches import Task
from ui.checkpoints import Choice
from ui.playground import Result
from ui.show import ClassName, number

ONE, OVER = "compare_one", "compare_over"  # (turn, choice, Classification); token of the first batch -> of the second


def draw_one(result: Result, fold: Fold, *, demo: bool) -> None:
    """Classes and probabilities of the exchange on screen by both checkpoints."""
    with st.expander("Compare with another checkpoint"):
        choice = _pick(demo=demo)
        if choice and st.button("Compare", key="compare_go"):
            try:
                said = cache.load_second(choice).classifier.predict([result.turn.exchange])[0]
                st.session_state[ONE] = (result.turn, choice, said)
            except RefusalCoreError as error:
                show.problem("Not compared", str(error))
        turn, other, said = st.session_state.get(ONE, (None, None, None))
        if turn is not result.turn or demo:
            return
        first = result.turn.said
        if said.label is None:
            show.text(f"{other.shown} cannot classify it: {said.error}")
            return
        show.text(f"{result.choice.shown} and {other.shown}")
        if first.label == said.label:
            show.sentence("Both say {label}.", label=_name(said.label))
        else:
            flips = fold.is_refused(first.label) != fold.is_refused(said.label)
            show.sentence(
                "The first says {one}, the second {two}: {flip} under {fold}.",
                one=_name(first.label),
                two=_name(said.label),
                flip="a flip" if flips else "no flip",
                fold=fold.name,
            )
        names = list(dict.fromkeys([*first.probabilities, *said.probabilities]))
        rows = [(_name(n), *(_p(answer.probabilities.get(n)) for answer in (first, said))) for n in names]
        show.facts(("class", "first", "second"), rows, right=("first", "second"))


def draw_over(task: Task, fold: Fold, *, demo: bool) -> None:
    """Agreement and flips of a second checkpoint over the rows of a batch."""
    choice = _pick(demo=demo)
    if choice and st.button("Compare over these rows", key="compare_batch"):
        _start(task, choice)
    tokens = st.session_state.get(OVER, {})
    second = cache.batches().get(tokens.get(task.token))
    if second is None or demo:
        return
    batch_inputs.watch(second)
    if second.running:
        return
    if second.problem:
        show.problem("Not compared", second.problem)
        return
    try:
        _draw_over(task.batch, second, compare(task.batch, second.batch, fold))
    except InputError as error:
        show.problem("Not compared", str(error))


def _start(task: Task, choice: Choice) -> None:
    try:
        second = cache.batches().start(task.again(), choice, cache.load_second(choice).classifier, BATCH_ROWS)
        st.session_state[OVER] = {task.token: second.token}
    except RefusalCoreError as error:
        show.problem("Not compared", str(error))


def _draw_over(first: Batch, second: Task, found: Comparison) -> None:
    show.text(f"{found.first.name} against {second.choice.shown}")
    show.sentence(
        "Same class: {same}. Same under {fold}: {folded}.",
        same=format_rate(found.agreement),
        fold=found.fold.name,
        folded=format_rate(found.agreement_folded),
    )
    show.sentence(
        "Refused by the first {one}, by the second {two}. Newly refused: {more} rows; no longer refused: {fewer} rows.",
        one=format_rate(found.refused_first),
        two=format_rate(found.refused_second),
        more=f"{len(found.to_refused):,}",
        fewer=f"{len(found.to_not_refused):,}",
    )
    if found.left_out:
        show.note(f"{found.left_out:,} rows that one of the two did not classify are left out.")
    rows = [(_name(one), _name(two), f"{n:,}") for (one, two), n in found.moves.items() if one != two]
    if not rows:
        st.markdown("No row changes its class.")
        return
    show.facts(("first", "second", "rows"), rows, right=("rows",))
    flips = {*found.to_refused, *found.to_not_refused}
    listed = [*sorted(flips), *(i for i in found.changed if i not in flips)][:TABLE_ROWS]
    st.dataframe(
        [_changed(first, second.batch, i, i in flips) for i in listed],
        hide_index=True,
        key="compare_changed",
        height=min(420, 38 + 35 * len(listed)),
        alt="Rows whose class changes, flips first, with both classes and the start of the response.",
    )
    if len(found.changed) > len(listed):
        show.sentence("The first {n} of {all}.", n=f"{len(listed):,}", all=f"{len(found.changed):,}")


def _changed(first: Batch, second: Batch, at: int, flip: bool) -> dict[str, object]:
    one, two = first.rows[at], second.rows[at]
    return {
        "line": one.row.line,
        "flip": "yes" if flip else "no",
        "first": one.answer.label,
        "second": two.answer.label,
        "label": one.row.label if isinstance(one.row, Exchange) else None,
        "response": one_line(one.row.response[:161], 160),
    }


def _pick(*, demo: bool) -> Choice | None:
    """The second checkpoint; None while none is chosen."""
    if demo:
        st.markdown("Demo: one checkpoint only, so that many visitors fit on one machine.")
        return None
    roots = DataRoots.from_environment()
    options = checkpoints.offered(cache.checkpoint_folders(roots).names, roots=False, demo=False)
    if st.session_state[state.SECOND] not in options:
        st.session_state[state.SECOND] = None
    option = st.selectbox(
        "Second checkpoint",
        options,
        format_func=checkpoints.option_name,
        key=state.SECOND,
        persist_state="session",
        placeholder="Choose one",
    )
    if option is None:
        return None
    name = ""
    if option == checkpoints.HUB:
        name = st.text_input(
            "Name on the hub, which is asked over the network", key=state.SECOND_HUB, persist_state="session"
        )
    try:
        return checkpoints.choose(option, "", name, roots, demo=False)
    except InputError as error:
        show.note(str(error))
        return None


def _name(label: str) -> str:
    return ClassName(label) if label in LABELS else label


def _p(value: float | None) -> str:
    return "–" if value is None else number(value)
