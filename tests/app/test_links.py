"""The share link is a contract: a view as query parameters and back."""

import base64
import zlib
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.labels import FOLDS
from refusal_core.limits import SHARED_TEXT_CHARACTERS
from refusal_core.samples import SAMPLES
from ui.state import View, can_share, from_params, link, to_params

short = st.text(max_size=SHARED_TEXT_CHARACTERS)


@given(
    st.sampled_from([None, "starter", "owner/name@0a1b"]),
    st.sampled_from([None, *FOLDS]),
    st.one_of(st.tuples(st.none(), st.tuples(short, short)), st.tuples(st.sampled_from([None, *SAMPLES]), st.none())),
)
def test_a_link_restores_its_view(checkpoint, fold, content):
    view = View(checkpoint, fold, *content)
    address = link(view, "http://localhost:8501/Playground")
    assert address.isascii() and " " not in address
    params = dict(parse_qsl(address.partition("?")[2], keep_blank_values=True))
    assert from_params(params) == (view, [])


@pytest.mark.parametrize("character", ["a", "é", "字", "\U0001f600", "\ud83d", "\0"])
def test_the_longest_texts_fit(character):
    view = View(texts=(character * SHARED_TEXT_CHARACTERS,) * 2)
    assert from_params(to_params(view)) == (view, [])


def test_incompressible_texts_fit():
    scattered = "".join(chr(0x10000 + (7_919 * n * n) % 0xF0000) for n in range(SHARED_TEXT_CHARACTERS))
    view = View(texts=(scattered, scattered[::-1]))
    assert from_params(to_params(view)) == (view, [])


def test_longer_texts_are_not_shared():
    assert not can_share("a" * (SHARED_TEXT_CHARACTERS + 1), "")
    with pytest.raises(ValueError, match="at most"):
        to_params(View(texts=("", "a" * (SHARED_TEXT_CHARACTERS + 1))))


def packed(content: bytes) -> str:
    return base64.urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        "", "!!!", "AAAA", "ä", "=" * 10, "a" * 1_000_000,
        packed(b"[" * 40_000), packed(b'["a"]'), packed(b'["a", 1]'), packed(b'{"a": 1}'), packed(b"\xff"),
        packed(b" " * 50_000_000), packed(b'["a", "b"]')[:-6], packed(b'["' + b"a" * 2_001 + b'", ""]'),
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_a_bad_text_is_left_out_with_one_sentence(text):
    view, ignored = from_params({"text": text, "fold": "not-compliant"})
    assert view == View(fold="not-compliant")
    assert len(ignored) == 1


@given(st.dictionaries(st.sampled_from(["checkpoint", "fold", "sample", "text", "other"]), st.text(max_size=300)))
def test_garbage_never_raises_and_never_names_itself(params):
    view, ignored = from_params(params)
    assert len(ignored) <= 4
    assert view.checkpoint is None or view.checkpoint == "starter" or "/" in view.checkpoint


@pytest.mark.parametrize("name", ["/etc/passwd", "../x/y", "folder:runs", "a" * 300 + "/b", "path"])
def test_a_link_cannot_name_a_folder(name):
    view, ignored = from_params({"checkpoint": name})
    assert view.checkpoint is None and len(ignored) == 1
