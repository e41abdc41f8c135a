"""How the files of a study are read: names of members, labels, layer, bits, and what is held out of a pooled file."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from refusal_core.activations.arrays import BITS
from refusal_core.activations.npz import NAMES
from refusal_core.activations.peek import Peek
from refusal_core.activations.reading import Reading
from refusal_core.errors import InputError
from ui import show, state

OURS = {"activations": "Activations", "labels": "Labels", "ids": "Ids", "categories": "Categories"}
EACH, CATEGORIES, ROWS = "each", "categories", "rows"
SPLITS = {
    EACH: "each category in turn, against random rows",
    CATEGORIES: "categories that I choose",
    ROWS: "random rows",
}
_ONES = ("refus", "harmful", "unsafe", "declin", "reject", "true", "yes", "pos")
_NOT_ONES = ("not", "non", "no_", "harmless")


def draw(peeks: Sequence[Peek], suffix: str, *, pooled: bool) -> Reading | None:
    """The choices that these files need; None while one is missing. Raises InputError for what no choice can mend."""
    columns = _columns(peeks, suffix)
    if columns is None:
        return None
    labels = _labels(peeks, columns["labels"], suffix)
    layer_index = _layer(peeks, columns["activations"], suffix)
    bits = _bits(peeks, columns["activations"], suffix)
    held_out, share = _held_out(peeks[0], columns["categories"], suffix) if pooled else ((), None)
    if labels == () or bits == "" or held_out is None:
        return None
    mapped = {ours: key for ours, key in columns.items() if ours != key}
    return Reading(mapped, labels, bits, layer_index, held_out, share)


def _columns(peeks: Sequence[Peek], suffix: str) -> dict[str, str] | None:
    if all(peek.is_ready() for peek in peeks):
        return {ours: ours for ours in NAMES}
    common = [key for key in peeks[0].members if all(key in peek.members for peek in peeks)]
    guess = {ours: key for ours, key in peeks[0].guess().items() if key in common}
    st.markdown("Its members are not called `activations`, `labels`, `ids` and `categories`: say which is which.")
    chosen = {}
    for place, ours in zip(st.columns(len(OURS)), OURS, strict=True):
        chosen[ours] = place.selectbox(
            OURS[ours],
            common,
            index=common.index(guess[ours]) if ours in guess else None,
            placeholder="none",
            key=f"study_map_{ours}_{suffix}",
        )
    if None in chosen.values():
        st.markdown("All four are needed: without ids and categories nothing can be held out. `convert` adds them.")
        return None
    if len(set(chosen.values())) < len(chosen):
        raise InputError("one member is chosen twice", where=peeks[0].name, fix="choose another for one of them")
    return chosen


def _labels(peeks: Sequence[Peek], key: str, suffix: str) -> tuple[str, str] | tuple[()] | None:
    """None when the files hold 0 and 1, () while nothing can be chosen."""
    if all(peek.members[key].kind in "biuf" and set(peek.labels(key)) <= {"0", "1", "False", "True"} for peek in peeks):
        return None
    found = sorted({text for peek in peeks for text in peek.labels(key)})
    if len(found) != 2:
        listed = ", ".join(f'"{text}"' for text in found[:6]) or "nothing that can be a label"
        raise InputError(
            f"it holds {listed}",
            where=f'{peeks[0].name}, member "{key}"',
            why="two labels are needed, 0 and 1 or two others",
            fix="leave the other examples out",
        )
    one = _likely_one(found)
    one_place, zero_place = st.columns(2, vertical_alignment="bottom")
    chosen_one = one_place.selectbox("The label that means 1", found, index=found.index(one), key=f"study_one_{suffix}")
    zero = next(text for text in found if text != chosen_one)
    with zero_place:
        show.text(f"The other one, {zero}, means 0.")
    return zero, chosen_one


def _likely_one(found: Sequence[str]) -> str:
    """Of two labels the one that is more likely 1: the larger number, or a word such as "refused"."""
    try:
        return max(found, key=float)
    except ValueError:
        pass
    likely = [text for text in found if any(word in text.lower() for word in _ONES)]
    likely = [text for text in likely if not text.lower().startswith(_NOT_ONES)] or likely
    return likely[0] if likely else found[1]


def _layer(peeks: Sequence[Peek], key: str, suffix: str) -> int | None:
    layers = peeks[0].layers(key)
    if layers is None:
        return None
    names = peeks[0].layer_names(key)
    return st.selectbox(
        "Layer",
        range(layers),
        index=min(layers - 1, layers // 2),
        format_func=lambda place: f"{names[place]} (place {place})" if names else f"place {place} of 0 to {layers - 1}",
        key=f"study_layer_index_{suffix}",
        width=260,
    )


def _bits(peeks: Sequence[Peek], key: str, suffix: str) -> str | None:
    """None when no declaration is needed, "" while it is missing."""
    if not any(peek.needs_bits(key) for peek in peeks):
        return None
    st.markdown("The activations are two bytes each without a type of their own: say what they are. It is not guessed.")
    return st.segmented_control("Two bytes are", BITS, key=f"study_bits_{suffix}") or ""


def _held_out(peek: Peek, key: str, suffix: str) -> tuple[tuple[str, ...] | None, float | None]:
    """Categories held out (None while none is chosen) and the share of random rows."""
    left, right = st.columns([1, 1])
    split = left.selectbox(
        "Hold out", list(SPLITS), format_func=SPLITS.get, key=state.STUDY_SPLIT, persist_state="session"
    )
    if split == EACH:
        return (), None
    if split == ROWS:
        share = right.number_input(
            "Share of the rows", 0.05, 0.95, step=0.05, format="%g", key=state.STUDY_SHARE, persist_state="session"
        )
        return (), share
    sizes = peek.categories(key)
    chosen = right.multiselect("Categories", list(sizes), key=f"study_held_{suffix}", placeholder="Choose some")
    if not chosen:
        st.markdown("Choose the categories to test on; the direction is fitted on the others.")
    return tuple(chosen) or None, None
