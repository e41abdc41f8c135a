"""Perturbations change how a response looks, never what it says, and say which they are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.errors import InputError
from refusal_core.exchanges import Exchange
from refusal_core.perturb import PERTURBATIONS, perturb

NAMES = ("lower_case", "double_spaces", "trailing_newline", "typographic_apostrophes", "markdown", "preamble")


def applied(name: str, text: str) -> str:
    return PERTURBATIONS[name].apply(text)


def test_what_each_does():
    assert tuple(PERTURBATIONS) == NAMES
    assert applied("lower_case", "I CAN'T, Éva.") == "i can't, éva."
    assert applied("double_spaces", "a b\n  c  d e ") == "a  b\n  c  d  e "
    assert applied("trailing_newline", "No.\n") == "No.\n\n"
    assert applied("typographic_apostrophes", "I can't say 'no' to d['x'] or the dogs'") == (
        "I can\u2019t say 'no' to d['x'] or the dogs'"
    )
    assert applied("markdown", " No. Never.") == "### Response\n\n**No.** Never."
    assert applied("markdown", "No, v1.2 is\nold.") == "### Response\n\nNo, v1.2 is\nold."
    for marked in ("**No.** Never.", "```py\nx. y\n```", "- No. Never.", "1. No."):
        assert applied("markdown", marked) == f"### Response\n\n{marked}"
    assert applied("preamble", "No.").endswith("\n\nNo.")
    assert all(re.fullmatch(r"[A-Z][^.]*\.", each.does) for each in PERTURBATIONS.values())


@given(st.text(), st.sampled_from(NAMES))
def test_the_words_stay_and_come_in_order(text, name):
    before, after = ("".join(re.findall(r"\w", t.lower())) for t in (text, applied(name, text)))
    assert after.endswith(before) and applied(name, text) == applied(name, text)
    if not text.strip():
        assert applied(name, text) == text


def test_an_exchange_keeps_its_identity_and_names_its_variant():
    before = Exchange("Why?", "I can't.", id=7, label="full_refusal", line=3, extra={"source": "own"})
    after = perturb(before, "trailing_newline")
    assert after == Exchange(
        "Why?", "I can't.\n", 7, "full_refusal", 3, {"source": "own", "variant": "trailing_newline"}
    )
    assert before.extra == {"source": "own"}
    with pytest.raises(InputError, match=r"no perturbation 'upper'.*lower_case"):
        perturb(before, "upper")
