"""Presets, and the share link of the Search demonstration as a contract."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.climb import Settings, demonstrate
from refusal_core.errors import InputError
from ui.search import PRESETS, check, from_params, preset_of, to_params
from ui.state import address

ANY = st.builds(
    Settings,
    seeds=st.integers(1, 200),
    budget=st.integers(1, 100_000),
    fanout=st.integers(1, 1_000),
    length=st.integers(1, 64),
    vocabulary=st.integers(2, 64),
    interactions=st.floats(0, 100),
    noise=st.one_of(st.just(0.0), st.floats(1e-6, 100)),
    objective=st.sampled_from(["raise", "lower"]),
    policy_seed=st.integers(0, 2**32 - 1),
)


@given(ANY)
def test_a_link_restores_its_settings(settings):
    shown = address(to_params(settings), "http://localhost:8501/Search_demonstration")
    assert shown.isascii() and " " not in shown
    assert from_params(dict(parse_qsl(shown.partition("?")[2]))) == (settings, [])


def test_a_link_that_names_no_setting_asks_for_nothing():
    assert from_params({}) == (None, [])
    assert from_params({"checkpoint": "starter", "fold": "not-compliant"}) == (None, [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seeds", "0"), ("seeds", "1e3"), ("seeds", ""), ("budget", "9" * 5_000), ("noise", "nan"), ("noise", "inf"),
        ("noise", "-1"), ("fanout", "4.0"), ("objective", "<b>up</b>"), ("policy_seed", "-1"), ("length", "x" * 10_000),
    ],
)  # fmt: skip
def test_a_bad_value_is_left_out_with_a_sentence_that_does_not_repeat_it(name, value):
    settings, ignored = from_params({name: value, "vocabulary": "5"})
    assert settings == Settings(vocabulary=5)
    assert len(ignored) == 1 and name.replace("_", " ") in ignored[0] and (not value or value not in ignored[0])
    assert from_params({name: value})[0] is None


@given(st.dictionaries(st.sampled_from([*to_params(Settings()), "noise", "objective", "other"]), st.text(max_size=50)))
def test_garbage_never_raises(params):
    settings, ignored = from_params(params)
    assert settings is None or isinstance(settings, Settings)
    assert len(ignored) <= len(params)


def test_presets_differ_and_fit_on_a_page():
    assert len({preset.settings for preset in PRESETS.values()}) == len(PRESETS)
    for key, preset in PRESETS.items():
        check(preset.settings)
        assert preset.key == key and preset_of(preset.settings) is preset
    assert preset_of(Settings(seeds=21)) is None


def test_presets_show_what_they_promise():
    additive = demonstrate(PRESETS["additive"].settings)
    assert additive.summaries["greedy"].reached.value == 1
    plain, many = (demonstrate(PRESETS[key].settings).summaries["climb"] for key in ("plain", "many"))
    assert many.regret.interval.width < 0.5 * plain.regret.interval.width
    assert many.spread.largest - many.spread.least >= 0.8 * (plain.spread.largest - plain.spread.least)
    noisy = demonstrate(PRESETS["noisy"].settings).summaries["climb"]
    assert noisy.flattery.interval.low > 0
    wide = demonstrate(PRESETS["wide"].settings)
    assert wide.fanouts[32].regret.value > wide.fanouts[4].regret.value
    assert demonstrate(PRESETS["long"].settings).summaries["climb"].regret.interval.high < plain.regret.value


def test_a_run_too_long_for_a_page_is_one_sentence_with_the_command():
    with pytest.raises(InputError) as caught:
        check(Settings(seeds=2_000, budget=2_000))
    said = str(caught.value)
    assert "4,000,000" in said and "at most 2,000,000" in said and "--seeds 2000 --budget 2000" in said
    check(Settings(seeds=1_000, budget=2_000))
