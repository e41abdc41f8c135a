"""The Search demonstration in each of its states."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from refusal_core.cli import main
from refusal_core.climb import Settings, demonstrate
from refusal_core.climb.demonstration import SIMULATED
from refusal_core.climb.report import report_json
from refusal_core.jobs import Job
from refusal_core.metrics.intervals import Interval, Rate
from tests.app.conftest import PLAYGROUND, visit, words
from ui import cache, state
from ui.search import PRESETS, to_params

SEARCH = "pages/5_Search_demonstration.py"


@pytest.fixture
def search(overview) -> Callable[..., AppTest]:
    """Opens the page, by a link when parameters are given."""

    def opened(**params: str) -> AppTest:
        return visit(overview(), SEARCH, **params)

    return opened


def press_run(app: AppTest) -> AppTest:
    next(button for button in app.button if button.label == "**Run**").click()
    app.run()
    assert not app.exception
    return app


def shown(app: AppTest) -> str:
    """The text of the page without the marks that keep Markdown from reading it."""
    return words(app).replace("\\", "")


def test_the_empty_page_says_simulated_and_what_to_do(search):
    app = search()
    assert app.title[0].value == "Search demonstration"
    assert SIMULATED in [text.value for text in app.text]
    assert "Pick a preset above" in words(app)
    assert not app.header and not app.get("plotly_chart")


@pytest.mark.parametrize("key", PRESETS)
def test_a_preset_runs_at_one_click_and_fills_the_boxes(search, key):
    app = search()
    app.get_by_key(state.SEARCH_PRESET).set_value(key).run()
    assert not app.exception
    chosen = PRESETS[key].settings
    assert app.number_input(key=state.SEARCH["budget"]).value == chosen.budget
    assert app.number_input(key=state.SEARCH["noise"]).value == chosen.noise
    demonstration = demonstrate(chosen)
    assert app.header[0].value.replace("\\", "") == f"{demonstration.summaries['climb'].regret} logits from the optimum"
    assert PRESETS[key].teaches in shown(app)
    assert len(app.get("plotly_chart")) == (6 if chosen.noise else 4)
    assert ("Without noise" in words(app)) == (chosen.noise == 0)
    assert ("Flattery: the reported score looks" in words(app)) == (chosen.noise > 0)


def test_page_and_command_give_the_same_numbers(search, tmp_path):
    app = search()
    app.number_input(key=state.SEARCH["seeds"]).set_value(6)
    app.number_input(key=state.SEARCH["budget"]).set_value(80)
    app.number_input(key=state.SEARCH["noise"]).set_value(0.3)
    app.number_input(key=state.SEARCH["policy_seed"]).set_value(3)
    press_run(app)
    [command] = [code.value for code in app.code if code.value.startswith("python -m")]
    arguments = command.split()[3:]
    arguments[-1] = str(tmp_path / "results")
    assert main(arguments) == 0
    written = (tmp_path / "results" / "report.json").read_text()
    chosen = Settings(seeds=6, budget=80, noise=0.3, policy_seed=3)
    assert written == report_json(cache.demonstration(chosen))

    def rate(found: dict, name: str = "mean") -> str:
        return str(Rate(found[name], found["n"], Interval(**found["interval"])))

    report, text = json.loads(written), shown(app)
    assert app.header[0].value.replace("\\", "").startswith(rate(report["summary"]["regret"]))
    assert rate(report["summary"]["reached_optimum"], "share") in text
    assert rate(report["summary"]["flattery"]) in text
    for baseline in report["baselines"]:
        assert rate(baseline["regret"]) in text
        assert f"{rate(baseline['paired']['regret_less_climbs'])}, {baseline['paired']['verdict']}" in text
    for fanout in report["fanouts"]:
        assert rate(fanout["regret"]) in text
    table = app.dataframe[0].value
    assert list(table["regret"]) == [seed["regret"] for seed in report["seeds"]]
    assert list(table["result"]) == [seed["sequence"] for seed in report["seeds"]]


def test_one_search_is_told_token_by_token(search):
    app = search(**to_params(PRESETS["plain"].settings))
    runs = demonstrate(PRESETS["plain"].settings).runs["climb"]
    for seed in (0, 13):
        app.number_input(key=state.SEARCH_SEED).set_value(seed).run()
        assert not app.exception
        [table] = [m.value for m in app.markdown if m.value.startswith("| evaluation")]
        lines = table.splitlines()[2:]
        assert len(lines) == len(runs.rows(seed))
        assert "**" not in lines[0] and all("**" in line for line in lines[1:])
    app.number_input(key=state.SEARCH_SEED).set_value(20).run()
    assert "There are the seeds 0 to 19." in words(app)


def test_too_long_a_run_is_one_sentence_and_the_last_result_stays(search):
    app = search(**to_params(PRESETS["plain"].settings))
    before = app.header[0].value
    app.number_input(key=state.SEARCH["seeds"]).set_value(10_000)
    app.number_input(key=state.SEARCH["budget"]).set_value(1_000)
    press_run(app)
    assert "at most 2,000,000" in words(app) and "The last result stays below" in words(app)
    assert app.header[0].value == before
    app.number_input(key=state.SEARCH["budget"]).set_value(100_000)
    press_run(app)
    assert "at most 20,000,000" in words(app) and app.header[0].value == before
    app.number_input(key=state.SEARCH["seeds"]).set_value(3)
    app.number_input(key=state.SEARCH["budget"]).set_value(50)
    press_run(app)
    assert "Not run" not in words(app) and app.header[0].value != before


def test_a_link_runs_what_it_names_and_the_address_names_what_ran(search):
    app = search(seeds="5", budget="60", fanout="2", noise="0.2", objective="lower")
    chosen = Settings(seeds=5, budget=60, fanout=2, noise=0.2, objective="lower")
    assert str(demonstrate(chosen).summaries["climb"].regret) in app.header[0].value.replace("\\", "")
    assert app.get_by_key(state.SEARCH["objective"]).value == "lower"
    assert app.query_params.keys() == to_params(chosen).keys()
    [link] = [code.value for code in app.code if code.value.startswith("?")]
    assert link == "?seeds=5&budget=60&fanout=2&noise=0.2&objective=lower"


def test_garbage_in_a_link_is_said_and_ignored(search):
    app = search(seeds="<script>", budget="![x](http://x.example)", noise="nan")
    assert sum("The link's value of" in text.value for text in app.text) == 3
    assert "script" not in words(app) and "x.example" not in words(app)
    assert not app.header
    mixed = search(seeds="4", budget="$x$")
    assert "n = 4" in mixed.header[0].value and "The link's value of budget" in words(mixed)


def test_a_link_too_long_for_a_page_is_refused(search):
    app = search(seeds="10000", budget="2000")
    assert "at most 2,000,000" in words(app) and not app.header


def test_figures_say_their_numbers(search):
    app = search(**to_params(PRESETS["noisy"].settings))
    d = demonstrate(PRESETS["noisy"].settings)
    texts = [chart.proto.alt for chart in app.get("plotly_chart")]
    for rate in (*(s.regret for s in d.summaries.values()), *(s.flattery for s in d.summaries.values())):
        assert any(str(rate) in text for text in texts)


def test_settings_and_result_stay_over_pages(search):
    app = search(**to_params(PRESETS["plain"].settings))
    before = app.header[0].value
    app.switch_page(PLAYGROUND).run()
    app.switch_page(SEARCH)
    app.query_params.clear()
    app.run()
    app.run()  # AppTest hands persisted values over one run later than a browser
    assert not app.exception
    assert app.header[0].value == before
    assert app.number_input(key=state.SEARCH["seeds"]).value == 20


def test_the_same_run_is_not_computed_again(search, monkeypatch):
    counted = []
    monkeypatch.setattr("refusal_core.climb.demonstrate", lambda *a: counted.append(a) or demonstrate(*a))
    app = search(seeds="3", budget="30")
    app.number_input(key=state.SEARCH_SEED).set_value(1).run()
    search(seeds="3", budget="30")
    assert len(counted) == 1


def test_the_cache_keeps_the_latest_few_and_reports_progress():
    told = []
    kept = [cache.demonstration(Settings(seeds=1, budget=n)) for n in range(1, cache.DEMONSTRATIONS + 1)]
    assert cache.demonstration(Settings(seeds=1, budget=1)) is kept[0]
    cache.demonstration(Settings(seeds=1, budget=50), Job(show=told.append, every=0))
    assert told[-1].done == told[-1].total
    assert cache.demonstration(Settings(seeds=1, budget=1)) is kept[0]
    assert cache.demonstration(Settings(seeds=1, budget=2)) is not kept[1]


def test_the_overview_links_to_a_preset(overview):
    link = next(link.proto for link in overview().get("page_link") if "noisy" in link.proto.label)
    assert (link.page, link.query_string) == ("Search_demonstration", "seeds=100&budget=200&fanout=4&noise=0.5")
