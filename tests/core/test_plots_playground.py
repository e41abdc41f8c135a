from refusal_core.labels import COLOUR, LABELS, OTHER_COLOUR
from refusal_core.plots import theme
from refusal_core.plots.playground import probabilities

FIVE = dict(zip(LABELS, (0.1, 0.2, 0.3, 0.05, 0.35), strict=True))


def test_bars_stand_in_the_order_and_colours_of_the_classes_whatever_the_checkpoint_says():
    figure, alt = probabilities(dict(reversed(FIVE.items())))
    [bars] = figure.data
    assert list(bars.x) == list(FIVE.values()) and list(bars.text) == ["0.100", "0.200", "0.300", "0.050", "0.350"]
    assert list(bars.marker.color) == [COLOUR[label] for label in LABELS]
    assert list(figure.layout.yaxis.ticktext) == list(LABELS)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1], "the first class is on top"
    assert figure.layout.xaxis.title.text == "probability"
    assert alt == (
        "Bar chart of the probability of each class: compliant 0.100, full_refusal 0.200, partial_refusal 0.300, "
        "capability_limitation 0.050, clarification 0.350."
    )


def test_other_classes_are_grey_and_their_names_are_text():
    figure, _ = probabilities({"<b>x</b> & $y$": 0.4, "a" * 100: 0.6})
    assert set(figure.data[0].marker.color) == {OTHER_COLOUR}
    first, second = figure.layout.yaxis.ticktext
    assert first == "&lt;b&gt;x&lt;/b&gt; &amp; &#36;y&#36;"
    assert second.endswith("…") and len(second) == 28


def test_the_ground_is_transparent_and_the_text_follows_the_page():
    figure, _ = probabilities(FIVE)
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.font.color == theme.INK_ON_LIGHT
    assert theme.ink(figure, dark=True).layout.yaxis.tickfont.color == theme.INK_ON_DARK
