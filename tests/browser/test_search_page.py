"""The Search demonstration in a real browser: preset, run, download, link, narrow screens, screen readers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

from refusal_core.cli import main  # noqa: E402
from tests.browser.conftest import WAIT_MS, Visitor  # noqa: E402
from tests.browser.test_pages import findings  # noqa: E402


def answer(visitor: Visitor, regret: str = "."):
    heading = visitor.page.get_by_role("heading", level=2, name=re.compile(rf"{regret}.*logits from the optimum"))
    expect(heading).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    return heading


def downloaded(visitor: Visitor, name: str) -> bytes:
    with visitor.page.expect_download(timeout=WAIT_MS) as waiting:
        visitor.page.get_by_role("button", name=f"Download {name}").click()
    assert waiting.value.suggested_filename == name
    return Path(waiting.value.path()).read_bytes()


def test_preset_run_and_download_the_same_bytes_as_the_command(visit, tmp_path):
    visitor = visit()
    page = visitor.open("/Search_demonstration")
    expect(page.get_by_text("Simulated: the scores come from a made-up table")).to_be_visible()
    page.get_by_role("button", name="First run").or_(page.get_by_role("radio", name="First run")).click()
    first = answer(visitor).inner_text()
    expect(page).to_have_url(re.compile(r"seeds=20&budget=200&fanout=4$"))
    page.get_by_label("Seeds", exact=True).fill("7")
    page.get_by_label("Noise", exact=True).fill("0.25")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", level=2)).not_to_have_text(first, timeout=WAIT_MS)
    answer(visitor, re.escape("n = 7"))
    page.get_by_role("tab", name="Downloads").click()
    assert main(["run", "--seeds", "7", "--noise", "0.25", "--out", str(tmp_path / "r")]) == 0
    for name in ("report.json", "trajectories.csv", "report.html"):
        assert downloaded(visitor, name) == (tmp_path / "r" / name).read_bytes(), name


def test_the_report_opens_offline_without_a_request(visit, browser, tmp_path):
    assert main(["run", "--seeds", "5", "--budget", "60", "--noise", "0.5", "--out", str(tmp_path / "r")]) == 0
    for scheme, width in (("light", 1280), ("dark", 390)):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        page = context.new_page()
        asked, said = [], []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.on("console", lambda message, said=said: said.append(message.text))
        page.goto((tmp_path / "r" / "report.html").as_uri())
        expect(page.get_by_role("heading", name="Search demonstration (simulated)")).to_be_visible()
        assert page.locator("svg").count() == 6
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        visitor = Visitor(page, "")
        assert not findings(visitor)
        assert [url for url in asked if not url.startswith("file:")] == []
        assert not said
        context.close()


def test_a_share_link_restores_the_run_elsewhere(visit):
    here = visit()
    page = here.open("/Search_demonstration?seeds=6&budget=50&fanout=3&objective=lower")
    said = answer(here).inner_text()
    page.get_by_role("tab", name="Link").click()
    link = page.get_by_test_id("stCode").filter(has_text="objective=lower")
    expect(link).to_be_visible()
    address = link.inner_text().strip()
    assert address.startswith(here.base + "/Search_demonstration?")
    there = visit()
    there.open(address.removeprefix(there.base))
    assert answer(there).inner_text() == said


def test_run_by_keyboard(visit):
    visitor = visit()
    page = visitor.open("/Search_demonstration")
    page.get_by_label("Budget", exact=True).focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("60")
    page.keyboard.press("Enter")
    answer(visitor)
    expect(page).to_have_url(re.compile(r"budget=60"))


def test_a_phone_shows_the_whole_page(visit):
    visitor = visit(width=390)
    page = visitor.open("/Search_demonstration?seeds=8&budget=80&fanout=4&noise=0.5&length=20")
    answer(visitor)
    for tab in ("One search", "Seeds", "Methods", "Downloads", "Command", "Link"):
        page.get_by_role("tab", name=tab).click()
        visitor.settle()
        wide = page.evaluate(
            "[document.documentElement, document.querySelector('[data-testid=stMain]')]"
            ".map(part => part.scrollWidth - part.clientWidth)"
        )
        assert wide == [0, 0], tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screen_readers_and_contrast(visit, scheme):
    visitor = visit(scheme=scheme)
    page = visitor.open("/Search_demonstration?seeds=20&budget=100&fanout=4&noise=0.5")
    answer(visitor)
    expect(page.get_by_label(re.compile("Mean flattery in logits: climb"))).to_be_visible()
    found = findings(visitor)
    for tab in ("Seeds", "Methods", "Downloads", "Command", "Link"):
        page.get_by_role("tab", name=tab).click()
        visitor.settle()
    found += findings(visitor)
    assert not found, "\n\n".join(found)
