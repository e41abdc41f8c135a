"""Training runs in a real browser: sample, zoom, a cell of the matrix, another baseline, the link, small screens."""

from __future__ import annotations

import os
import re

import pytest

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

from tests.browser.conftest import WAIT_MS, Visitor  # noqa: E402
from tests.browser.test_pages import findings  # noqa: E402
from tests.run_folders import make_run  # noqa: E402

RANGE = "document.querySelector('.js-plotly-plot').layout.xaxis.range.map(Number)"


@pytest.fixture(scope="module")
def folder(tiny_checkpoint):
    """Two runs below the server's data root."""
    root = tiny_checkpoint.parent / "detector-runs"
    make_run(root / "one")
    make_run(root / "two", seed=3, learning_rate=5e-5, broken=True)
    for path in root.rglob("*"):
        os.utime(path, (0, 0))  # long finished: nobody follows it
    return root.name


def opened(visitor: Visitor, query: str, answer: str):
    page = visitor.open(f"/Training_runs{query}")
    expect(page.get_by_role("heading", level=2, name=re.compile(answer))).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    return page


def test_sample_zoom_cell_baseline_and_link(visit, folder):
    visitor = visit()
    page = visitor.open("/Training_runs")
    page.get_by_role("button", name="A published card").click()
    expect(page.get_by_role("heading", level=2, name=re.compile("macro F1 0.8428"))).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("contradiction")).to_be_visible()
    expect(page).to_have_url(re.compile(r"runs=sample%3Acard"))

    page = opened(visitor, f"?runs=folder:{folder}", "one checkpoint-200 has the best macro F1 of 2 runs")
    plot = page.locator(".js-plotly-plot").first
    expect(plot.locator(".scatterlayer .trace").first).to_be_visible(timeout=WAIT_MS)
    plot.scroll_into_view_if_needed()
    visitor.settle()
    box = plot.locator(".nsewdrag").first.bounding_box()
    before = page.evaluate(RANGE)
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.8, steps=4)
    page.mouse.up()
    page.wait_for_function(f"{RANGE}[0] > {before[0]} + 50")

    expect(page.get_by_label(re.compile("Difference in macro F1 from one checkpoint-100"))).to_be_visible()
    baseline = page.get_by_role("combobox", name=re.compile("Baseline"))
    baseline.scroll_into_view_if_needed()  # scrolling would close the list again
    visitor.settle()
    baseline.click()
    page.get_by_role("option", name="two checkpoint-200").click()
    expect(page).to_have_url(re.compile("baseline=two%7Ccheckpoint-200"), timeout=WAIT_MS)
    expect(page.get_by_label(re.compile("Difference in macro F1 from two checkpoint-200"))).to_be_visible()

    page.get_by_role("tab", name="Classes").click()
    cells = page.locator(".js-plotly-plot:has(.heatmaplayer .hm) .scatterlayer .point")
    expect(cells).to_have_count(25, timeout=WAIT_MS)
    visitor.settle()
    cells.nth(1 * 5 + 2).click(force=True)
    expect(page.get_by_text(re.compile("of full_refusal predicted as partial_refusal"))).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_role("region", name=re.compile("items of the chosen cell"))).to_be_visible()

    page.get_by_role("tab", name="Link").click()
    link = page.get_by_test_id("stCode").filter(has_text="runs=folder")
    expect(link).to_be_visible()
    address = link.inner_text().strip()
    there = visit()
    there.open(address.removeprefix(there.base).replace("tab=Link", "tab=Classes"))
    expect(there.page.get_by_text(re.compile("of full_refusal predicted as partial_refusal"))).to_be_visible(
        timeout=WAIT_MS
    )
    there.page.get_by_role("tab", name="Checkpoints").click()
    expect(there.page.get_by_label(re.compile("from two checkpoint-200"))).to_be_visible(timeout=WAIT_MS)


@pytest.mark.parametrize(("scheme", "width"), [("dark", 390)])
def test_every_tab_fits_and_is_read_by_screen_readers(visit, folder, scheme, width):
    visitor = visit(scheme=scheme, width=width)
    page = opened(visitor, f"?runs=folder:{folder}", "one checkpoint-200")
    found = []
    for tab in ("Checkpoints", "Classes", "Calibration", "Settings", "Downloads", "Link"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        visitor.settle()
        expect(page.locator("[data-stale=true]")).to_have_count(0)  # what waits to be redrawn is pale
        wide = page.evaluate(
            "[document.documentElement, document.querySelector('[data-testid=stMain]')]"
            ".map(part => part.scrollWidth - part.clientWidth)"
        )
        assert wide == [0, 0], tab
        if tab in ("Checkpoints", "Classes", "Calibration"):
            found += findings(visitor)
    assert not found, "\n\n".join(found)
