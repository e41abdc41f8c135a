import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.errors import Cancelled, InputError, MissingPackage, RefusalCoreError, WorkError, one_line

HOSTILE = "a\nb\r\tc\0\x1b[31m\u2028\u2029\x85\u202e\u2066\u200f\u061c"
ANY_TEXT = st.text(st.characters(categories=("Cc", "Cf", "Cs", "L", "P", "Z"))) | st.just(HOSTILE)


@given(ANY_TEXT, st.integers(1, 50))
def test_one_line_is_one_printable_line_of_at_most_the_limit(text, limit):
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    line.encode("utf-8")
    assert not any(unicodedata.category(c) == "Cc" for c in line)
    assert not any(
        unicodedata.bidirectional(c) in {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"} for c in line
    )
    assert not set(line) & {"\u200e", "\u200f", "\u061c"}


@given(st.text(st.characters(categories=("L", "Nd", "P")), max_size=600))
def test_one_line_leaves_plain_text_as_it_is(text):
    assert one_line(text) == text


def test_one_line_marks_what_it_cut():
    assert one_line("x" * 601) == "x" * 599 + "…"
    assert one_line("x" * 600) == "x" * 600


def test_input_error_is_what_where_why_fix_in_one_sentence():
    error = InputError("it is wrong", where="f.csv", why="that was expected", fix="mend it")
    assert str(error) == "f.csv: it is wrong; that was expected; mend it."
    assert (error.what, error.where, error.why, error.fix) == ("it is wrong", "f.csv", "that was expected", "mend it")
    assert str(InputError("wrong")) == "wrong."
    assert str(InputError("wrong!")) == "wrong!"


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_input_error_stays_one_line_whatever_the_user_wrote(what, where, why, fix):
    text = str(InputError(what, where=where, why=why, fix=fix))
    assert len(text.splitlines()) == 1
    text.encode("utf-8")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x"), 2),
        (WorkError("x"), 1),
        (MissingPackage("pyarrow", purpose="Reading Parquet", extra="parquet"), 1),
        (Cancelled(), 130),
    ],
)
def test_exit_codes(error, code):
    assert isinstance(error, RefusalCoreError) and error.exit_code == code


def test_a_missing_package_names_the_pip_line():
    error = MissingPackage("pyarrow", purpose="Reading Parquet", extra="parquet")
    assert str(error) == 'Reading Parquet needs the package pyarrow: pip install -e ".[parquet]".'
    assert str(Cancelled()) == "Stopped by the user."
