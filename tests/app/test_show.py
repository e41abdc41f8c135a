import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.labels import LABELS
from ui import show
from ui.show import ClassName, number, plain


def test_classes_keep_their_underscore_and_get_their_mark():
    assert plain("full_refusal") == "full\\_refusal"
    assert plain(ClassName("full_refusal")) == ":orange[■] full\\_refusal"
    assert len({plain(ClassName(label)).split("[")[0] for label in LABELS}) == 5


@given(st.text())
def test_no_mark_of_markdown_survives_unescaped(text):
    shown = plain(text)
    for place, character in enumerate(shown):
        if character in "*_`[]<>$:#|~!&@\\" and (place == 0 or shown[place - 1] != "\\"):
            assert character == "\\"
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.5, "0.500"), (0.99996, ">0.999"), (1.0, "1.000"), (0.00001, "<0.001"), (0.0, "0.000"), (0.9994, "0.999")],
)
def test_a_probability_is_never_rounded_to_certainty(value, shown):
    assert number(value) == shown


def test_long_text_is_cut_in_the_middle_and_says_so():
    shown = show._cut("a" * 30_000 + "end")
    assert len(shown) < 21_000 and shown.endswith("end") and "10,003 characters are not shown" in shown
