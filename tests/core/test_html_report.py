import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.plots.html import Banner, Chart, Code, Lead, Section, Table, html_report
from refusal_core.plots.svg import HEIGHT, TEXT_ROW, WIDTH, Line, Row, interval_chart, line_chart, ticks

NASTY = '<script>alert("x")</script><img src=x onerror=alert(1)>&amp;\'"</style></pre></title>'
FINITE = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-3)


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.text, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


def everything_with(text):
    parts = [text, Code(text), Banner(text), Lead(text), Table((text, "n"), [(text, 1)], caption=text)]
    return html_report(text, [Section(text, [*parts, Chart("<svg></svg>", text)])])


def test_text_of_any_origin_is_text_everywhere():
    plain, nasty = Reader(everything_with("harmless")), Reader(everything_with(NASTY))
    assert nasty.tags == plain.tags
    assert [name for name, _ in nasty.attributes] == [name for name, _ in plain.attributes]
    assert "".join(nasty.text).count(NASTY) == "".join(plain.text).count("harmless")
    assert ("aria-label", NASTY) in nasty.attributes


@given(st.text(min_size=1))
def test_no_text_adds_a_tag(text):
    assert Reader(everything_with(text)).tags == Reader(everything_with("harmless")).tags


def test_code_keeps_its_lines_and_the_rest_is_one_line():
    page = html_report("a\nb", [Section("", [Code("one\n  two"), "one\ntwo"])])
    assert "one\n  two</pre>" in page
    assert "<p>one two</p>" in page
    assert "<title>a b</title>" in page


def test_numbers_stand_right_and_words_left():
    table = Table(("name", "count", "share"), [("a", 1_000, "0.5"), ("b", None, "-1,000.25")])
    page = html_report("t", [Section("", [table])])
    assert '<td>a</td><td class="number">1,000</td><td class="number">0.5</td>' in page
    assert '<td>b</td><td class="number"></td><td class="number">-1,000.25</td>' in page
    mixed = html_report("t", [Section("", [Table(("x",), [("1",), ("one",)])])])
    assert 'class="number"' not in mixed.split("</style>")[1]


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="as the header has"):
        html_report("t", [Section("", [Table(("a", "b"), [("1", "2"), ("1",)])])])
    with pytest.raises(ValueError, match="as the header has"):
        html_report("t", [Section("", [Table(("a",), [("1", "2")])])])


def test_what_is_no_part_is_refused():
    with pytest.raises(TypeError, match="no part of a report: int"):
        html_report("t", [Section("", [5])])


def test_the_policy_forbids_script_and_requests():
    page = html_report("t", [])
    assert "default-src 'none'" in dict(Reader(page).attributes).get("content", "") or "default-src 'none'" in page
    assert "script-src" not in page
    assert "url(" not in page
    assert "@import" not in page


# Charts


@given(FINITE, st.floats(1e-3, 1e6), st.integers(2, 10))
def test_ticks_are_round_and_enclose_the_range(low, width, about):
    found = ticks(low, low + width, about)
    slack = 1e-6 * width + 1e-9
    assert found[0] <= low + slack
    assert found[-1] >= low + width - slack
    assert 2 <= len(found) <= 2 * about + 3
    step = found[1] - found[0]
    assert float(f"{step:.1e}") == pytest.approx(step, rel=1e-6)


def coordinates(svg):
    for name, value in re.findall(r'\b(x1|x2|y1|y2|cx|cy|points)="([^"]*)"', svg):
        for number in re.split(r"[ ,]", value):
            yield name, float(number)


@given(st.lists(st.lists(FINITE, min_size=2, max_size=8), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_curves_stay_in_the_drawing(curves, log_x, step):
    lines = [Line(f"line {k}", range(1, len(y) + 1), y, step=step) for k, y in enumerate(curves)]
    svg = line_chart(lines, x_title="x", y_title="y", log_x=log_x, level=(curves[0][0], "level"))
    for name, number in coordinates(svg):
        assert -0.1 <= number <= (WIDTH if "x" in name else max(WIDTH, HEIGHT)) + 0.1


@given(st.lists(FINITE, min_size=1, max_size=12))
def test_labels_at_the_end_do_not_cover_each_other(ends):
    lines = [Line(f"name{k}", [1, 2], [0, y]) for k, y in enumerate(ends)]
    svg = line_chart(lines, x_title="x", y_title="y")
    heights = sorted(float(y) for y in re.findall(r'y="([\d.-]+)" text-anchor="start">name', svg))
    assert len(heights) == len(ends)
    assert all(b - a >= TEXT_ROW - 0.2 for a, b in zip(heights, heights[1:], strict=False))


@given(st.lists(st.tuples(FINITE, st.floats(0, 100)), min_size=1, max_size=5))
def test_intervals_lie_around_their_value(rows):
    svg = interval_chart([Row("a", v, v - half, v + half, dots=[v]) for v, half in rows], x_title="x")
    bars = re.findall(r'stroke-width="3" x1="([\d.-]+)" x2="([\d.-]+)"', svg)
    values = re.findall(r'class="accent dot" cx="([\d.-]+)"', svg)
    assert len(bars) == len(values) == len(rows)
    for (low, high), value in zip(bars, values, strict=True):
        assert float(low) - 0.11 <= float(value) <= float(high) + 0.11


def test_a_row_without_interval_has_no_bar():
    assert "stroke-width" not in interval_chart([Row("a", 1.0, None, None)], x_title="x")


def test_names_in_charts_are_escaped():
    assert "<b>" not in line_chart([Line("<b>", [1, 2], [1, 2])], x_title="<b>", y_title="<b>", level=(1, "<b>"))
    assert "<b>" not in interval_chart([Row("<b>", 1, 0, 2, note="<b>")], x_title="<b>")


def test_a_band_is_drawn_where_there_is_one():
    nan = float("nan")
    with_band = Line("a", [1, 2, 3], [1, 2, 3], [0, 1, nan], [2, 3, nan])
    assert "polygon" in line_chart([with_band], x_title="x", y_title="y")
    assert "polygon" not in line_chart([Line("a", [1, 2], [1, 2], [nan, nan], [nan, nan])], x_title="x", y_title="y")
    assert "nan" not in line_chart([with_band], x_title="x", y_title="y")


@pytest.mark.parametrize("ends", [(-1.7e308, 1.7e308), (0.0, 5e-324), (1e16, 1e16 + 2), (1e308, 1e308)])
def test_any_float_has_a_place_or_lies_outside(ends):
    drawn = line_chart([Line("a", ends, ends)], x_title="x", y_title="y")
    drawn += interval_chart([Row("a", ends[0], *ends)], x_title="x")
    assert "nan" not in drawn and "inf" not in drawn
