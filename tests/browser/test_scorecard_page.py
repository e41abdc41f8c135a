"""The Scorecard page in a real browser: run, filter, open a cell, sign off, follow the link, on a phone too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

from refusal_core.classifier.checkpoint import STARTER_FOLDER  # noqa: E402
from refusal_core.cli import main  # noqa: E402
from tests.app.scorecard_cases import BAD, write_suite  # noqa: E402
from tests.browser.conftest import WAIT_MS, Visitor  # noqa: E402
from tests.browser.test_pages import findings  # noqa: E402


@pytest.fixture(scope="module")
def suite(tiny_checkpoint) -> Path:
    """A suite below the server's data root."""
    return write_suite(tiny_checkpoint.parent / "suites")


def answer(visitor: Visitor, words: str = "exit code") -> str:
    heading = visitor.page.get_by_role("heading", level=2, name=re.compile(words))
    expect(heading).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    return heading.inner_text()


def run_suite(visitor: Visitor) -> str:
    visitor.page.set_default_timeout(WAIT_MS)  # a busy machine draws slowly
    page = visitor.open("/Scorecard?suite=suites/gate.yaml")
    expect(page.get_by_text("nothing has been run. Press Run")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    return answer(visitor)


def test_run_filter_open_a_cell_sign_off_and_follow_the_link(visit, suite, tmp_path):
    here = visit()
    page = here.page
    said = run_suite(here)
    assert said.startswith("✕ Fail: ")
    pill = page.get_by_role("button", name="✕ fail").or_(page.get_by_role("checkbox", name="✕ fail"))
    pill.click()
    here.settle()
    expect(page).to_have_url(re.compile("show=fail"))
    page.get_by_role("combobox", name="Assertion").focus()
    page.keyboard.type("acc-change")
    page.keyboard.press("Enter")
    here.settle()
    expect(page.get_by_text("Flips against the baseline")).to_be_visible()
    expect(page.get_by_text("32 right there, wrong here")).to_be_visible()
    expect(page.get_by_label(re.compile("^Intervals of change of accuracy against prod"))).to_be_visible()
    table = page.get_by_test_id("stDataFrame").first
    box = table.bounding_box()
    table.click(position={"x": box["width"] - 60, "y": 38 + 16})  # the first line, not the first column
    expect(page).to_have_url(re.compile(r"cell=0\.[012]"))
    here.settle()
    page.get_by_role("tab", name="Sign-off").click()
    page.get_by_role("textbox", name="Your name").fill("Ana")
    page.get_by_role("textbox", name="Note").fill("Known, ticket 7")
    page.get_by_role("button", name="Sign off this result").click()
    expect(page.get_by_text(re.compile("^Signed off by Ana, .*: Known, ticket 7"))).to_be_visible()
    page.get_by_role("tab", name="Downloads").click()
    for name, kind in (("JSON", "json"), ("JUnit", "xml")):
        with page.expect_download(timeout=WAIT_MS) as waiting:
            page.get_by_role("button", name=name, exact=True).click()
        (tmp_path / f"page.{kind}").write_bytes(Path(waiting.value.path()).read_bytes())
    assert (
        main(["scorecard", str(suite), "--json", str(tmp_path / "c.json"), "--junit", str(tmp_path / "c.xml")]) == 100
    )
    assert (tmp_path / "page.json").read_bytes() == (tmp_path / "c.json").read_bytes()
    assert (tmp_path / "page.xml").read_bytes() == (tmp_path / "c.xml").read_bytes()
    page.get_by_role("tab", name="Link").click()
    address = page.get_by_test_id("stCode").filter(has_text="result=").inner_text().strip()
    there = visit(width=390, scheme="dark")
    there.open(address.removeprefix(there.base))
    assert answer(there) == said
    expect(there.page.get_by_text(re.compile("^Signed off by Ana"))).to_be_visible()
    wide = there.page.evaluate(
        "[document.documentElement, document.querySelector('[data-testid=stMain]')]"
        ".map(part => part.scrollWidth - part.clientWidth)"
    )
    assert wide == [0, 0]
    assert BAD in there.page.locator("body").inner_text()
    found = findings(there)
    there.page.get_by_role("tab", name="History").click()
    there.page.get_by_text("Read the history of this suite").click()
    there.settle()
    found += findings(there)
    assert not found, "\n\n".join(found)


@pytest.mark.skipif(not (STARTER_FOLDER / "run").is_dir(), reason="the starter's predictions are not in this checkout")
def test_the_sample_at_one_click(visit):
    visitor = visit()
    page = visitor.open("/Scorecard")
    name = "Three checkpoints"
    page.get_by_role("button", name=name).or_(page.get_by_role("radio", name=name)).click()
    answer(visitor)
    expect(page).to_have_url(re.compile("suite=sample%3Astarter"))
    expect(page.get_by_text(re.compile("shipped: ")).first).to_be_visible()
