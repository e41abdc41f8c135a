import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core import limits
from refusal_core.errors import InputError
from refusal_core.limits import check_size, show_bytes


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1 kB"),
        (1_500_000, "1.5 MB"),
        (64_000_000, "64 MB"),
        (123_456_789, "123 MB"),
        (999_999, "1,000 kB"),
        (8_000_000_000, "8 GB"),
        (12_345_000_000_000, "12,345 GB"),
    ],
)
def test_show_bytes(size, text):
    assert show_bytes(size) == text


@given(st.integers(0, 10**15))
def test_show_bytes_is_right_to_three_digits_and_plain(size):
    number, unit = show_bytes(size).split()
    value = float(number.replace(",", "")) * {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
    assert value == pytest.approx(size, rel=0.005)


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_a_size_is_refused_exactly_above_the_limit(size, limit):
    if size <= limit:
        check_size(size, limit, what="the file", where="f", fix="cut it")
        return
    with pytest.raises(InputError) as error:
        check_size(size, limit, what="the file", where="f", fix="cut it")
    assert str(error.value).startswith("f: the file is ") and str(error.value).endswith("; cut it.")
    shown, most = error.value.what.removeprefix("the file is "), error.value.why
    assert shown not in most, "the sentence would contradict itself"


def test_a_few_bytes_over_are_shown():
    with pytest.raises(InputError, match="the file is 64,000,001 bytes; at most 64,000,000 bytes is read"):
        check_size(64_000_001, limits.UPLOAD_BYTES, what="the file", where="f", fix="cut it")


def test_every_limit_is_a_positive_whole_number():
    table = {name: value for name, value in vars(limits).items() if name.isupper()}
    assert len(table) > 10
    assert all(type(value) is int and value > 0 for value in table.values())
