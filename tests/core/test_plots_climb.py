"""The figures show the numbers of the result, and their texts say them."""

import math

import pytest

from refusal_core.climb import Settings, demonstrate
from refusal_core.climb.policy import UNIT
from refusal_core.plots import climb as plots
from refusal_core.plots import theme
from refusal_core.plots.svg import log_ticks

FIGURES = [plots.searches, plots.methods, plots.paired, plots.fanouts, plots.reported, plots.flattery]


@pytest.fixture(scope="module")
def noisy():
    return demonstrate(Settings(seeds=7, budget=120, noise=0.4))


@pytest.mark.parametrize("draw", FIGURES, ids=lambda draw: draw.__name__)
def test_every_figure_has_axes_a_text_and_the_ground_of_the_page(noisy, draw):
    figure, alt = draw(noisy)
    assert alt.endswith(".") and len(alt) > 40
    assert figure.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.font.color == theme.INK_ON_LIGHT
    assert figure.layout.xaxis.title.text
    assert not figure.layout.showlegend
    assert all(trace.line.color or trace.line.width == 0 or trace.marker.color for trace in figure.data)


def test_each_search_ends_at_its_best_and_the_optimum_is_a_line(noisy):
    figure, alt = plots.searches(noisy)
    [trace] = figure.data
    breaks = [k for k, x in enumerate(trace.x) if x is None]
    assert len(breaks) == 7
    assert [trace.y[k - 1] for k in breaks] == [best / UNIT for best in noisy.runs["climb"].best]
    assert {trace.x[k - 1] for k in breaks} == {120}
    assert figure.layout.shapes[0].y0 == noisy.optimum.value / UNIT
    assert f"{noisy.optimum.value / UNIT:.3f}" in alt


def test_rows_are_means_with_their_intervals(noisy):
    for draw, rates in (
        (plots.methods, [s.regret for s in noisy.summaries.values()]),
        (plots.paired, [p.difference for p in noisy.paired]),
        (plots.flattery, [s.flattery for s in noisy.summaries.values()]),
    ):
        figure, alt = draw(noisy)
        means = [t.x[0] for t in figure.data if t.mode == "markers" and len(t.x) == 1]
        bars = [tuple(t.x) for t in figure.data if t.mode == "lines"]
        assert means == [rate.value for rate in rates]
        assert bars == [(rate.interval.low, rate.interval.high) for rate in rates]
        assert all(str(rate) in alt for rate in rates)


def test_curves_are_those_of_the_fanouts_and_the_chosen_one_has_its_interval(noisy):
    figure, _ = plots.fanouts(noisy)
    curves = [trace for trace in figure.data if trace.line.width]
    assert [list(t.y) for t in curves] == [list(s.curve.regret) for s in noisy.fanouts.values()]
    [high, low] = [trace for trace in figure.data if not trace.line.width]
    assert list(high.y) == list(noisy.fanouts[4].curve.high)
    assert list(low.y) == list(noisy.fanouts[4].curve.low)
    assert [a.text for a in figure.layout.annotations] == [f"fan-out {f}" for f in (1, 2, 4, 8, 16)]
    assert [t.line.width for t in curves] == [1.8, 1.8, 3, 1.8, 1.8]


def test_without_noise_there_is_no_flattery_to_draw():
    with pytest.raises(ValueError, match="without noise"):
        plots.flattery(demonstrate(Settings(seeds=2, budget=20)))


@pytest.mark.parametrize(
    "chosen",
    [
        Settings(seeds=1, budget=1, length=1, vocabulary=2),
        Settings(seeds=2, budget=300, length=1, vocabulary=2, fanout=7),
        Settings(seeds=120, budget=2, objective="lower"),
    ],
    ids=["least", "all optimal", "two evaluations"],
)
def test_extreme_results_are_drawn(chosen):
    d = demonstrate(chosen)
    for draw in FIGURES[:-1]:
        figure, _ = draw(d)
        low, high = figure.layout.yaxis.range
        assert math.isfinite(low) and math.isfinite(high) and low != high
        assert figure.data


def test_only_the_first_seeds_are_drawn():
    figure, alt = plots.searches(demonstrate(Settings(seeds=120, budget=10)))
    assert list(figure.data[0].x).count(None) == plots.DRAWN_SEEDS == 50
    assert "50 seeds" in alt


def test_ticks_of_a_log_axis():
    assert log_ticks(1, 200) == [1, 2, 5, 10, 20, 50, 100, 200]
    assert log_ticks(1, 100_000) == [1, 10, 100, 1_000, 10_000, 100_000]
    assert log_ticks(1, 1) == [1]
