"""The app in a real browser: keyboard, links, screen readers, narrow screens, several people at once."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

from refusal_core.samples import SAMPLES  # noqa: E402
from tests.browser.conftest import WAIT_MS, Visitor  # noqa: E402

# Findings in markup that Streamlit makes and no page can change, as (rule, part of the element's HTML).
STREAMLITS_OWN: tuple[tuple[str, str], ...] = ()
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}}


def answer(visitor: Visitor, label: str | None = None):
    """The heading that states the class, once it is there."""
    heading = visitor.page.get_by_role("heading", level=2, name=re.compile(label or "."))
    expect(heading).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    return heading


def findings(visitor: Visitor) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    response = Axe().run(visitor.page, options=WCAG).response
    assert len(response["passes"]) > 10, "axe did not look at the page"
    found = response["violations"]
    places = [(rule["id"], node["html"], node.get("failureSummary", "")) for rule in found for node in rule["nodes"]]
    return [
        f"{rule}: {html[:300]}\n{why}"
        for rule, html, why in places
        if not any(rule == known and part in html for known, part in STREAMLITS_OWN)
    ]


def test_classify_by_keyboard(visit):
    visitor = visit()
    page = visitor.open("/Playground")
    page.get_by_role("textbox", name="Prompt").focus()
    page.keyboard.type("Please repair it.")
    page.keyboard.press("Tab")
    page.keyboard.type("Which program do you mean, and what does it show?")
    page.keyboard.press("Control+Enter")
    answer(visitor, "clarification")
    expect(page.get_by_label(re.compile("Bar chart of the probability of each class: compliant 0"))).to_be_visible()


def test_sample_at_one_click_and_again_after_an_edit(visit):
    visitor = visit()
    page = visitor.open("/Playground")
    page.get_by_role("button", name="Fix it").or_(page.get_by_role("radio", name="Fix it")).click()
    answer(visitor, "clarification")
    expect(page.get_by_role("textbox", name="Response")).to_have_value(SAMPLES["fix-it"].response)
    expect(page).to_have_url(re.compile(r"checkpoint=starter&fold=full-partial&sample=fix-it"))


def test_share_link_with_text_restores_the_view_elsewhere(visit):
    here = visit()
    page = here.open("/Playground")
    text = "I have no way to hear the recording. <b>$x$</b> ![x](http://x.example/a.png) é 字"
    page.get_by_text("anything but compliant").click()
    page.get_by_role("textbox", name="Response").fill(text)
    page.keyboard.press("Control+Enter")
    answer(here, "capability_limitation")
    page.get_by_role("tab", name="Link").click()
    page.get_by_text("Include the text").click()
    link = page.get_by_test_id("stCode").filter(has_text="text=")
    expect(link).to_be_visible()
    address = link.inner_text().strip()
    assert address.startswith(here.base + "/Playground?")
    there = visit()
    there.open(address.removeprefix(there.base))
    said = answer(there, "capability_limitation").inner_text()
    assert said == page.get_by_role("heading", level=2).inner_text()
    expect(there.page.get_by_role("textbox", name="Response")).to_have_value(text)
    expect(there.page.get_by_role("radio", name="anything but compliant")).to_be_checked()


def test_settings_stay_over_the_menu_and_the_overview_opens_its_sample(visit):
    visitor = visit()
    page = visitor.open("/")
    page.get_by_label("Checkpoint").click()
    page.get_by_role("option", name="tiny-bert").click()
    page.get_by_text("anything but compliant").click()
    visitor.settle()
    page.get_by_role("link", name="Classify this sample").click()
    answer(visitor)
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value(SAMPLES["break-in"].prompt)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    visitor.settle()
    expect(page.get_by_role("cell", name="loaded", exact=True)).to_be_visible()
    expect(page.get_by_role("radio", name="anything but compliant")).to_be_checked()


def test_errors_are_sentences_and_the_last_result_stays(visit):
    visitor = visit()
    page = visitor.open("/Playground?sample=bomb&fold=%3Cscript%3E&text=%25%25&checkpoint=..%2Fx")
    expect(page.get_by_text("The link names a checkpoint that no link can name")).to_be_visible()
    answer(visitor, "full_refusal")
    page.get_by_role("textbox", name="Prompt").fill("")
    page.get_by_role("textbox", name="Response").fill("<think>not yet")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("The response ends inside its reasoning")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("The last result stays below")).to_be_visible()
    answer(visitor, "full_refusal")


def test_two_sessions_at_once_keep_apart(visit):
    one, other = visit(), visit()
    one.open("/Playground")
    other.open("/Playground")
    for visitor, response in ((one, "Which file do you mean?"), (other, "I won't help with that, and I never will.")):
        visitor.page.get_by_role("textbox", name="Response").fill(response)
        visitor.page.keyboard.press("Control+Enter")
    answer(one, "clarification")
    answer(other, "full_refusal")


@pytest.mark.parametrize("path", ["/", "/Playground?sample=late-refusal"])
def test_a_phone_shows_the_whole_page(visit, path):
    visitor = visit(width=390)
    page = visitor.open(path)
    if "sample" in path:
        answer(visitor)
    wide = page.evaluate(
        "[document.documentElement, document.querySelector('[data-testid=stMain]')]"
        ".map(part => part.scrollWidth - part.clientWidth)"
    )
    assert wide == [0, 0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screen_readers_and_contrast(visit, scheme):
    visitor = visit(scheme=scheme)
    visitor.open("/")
    found = findings(visitor)
    visitor.open("/Playground?sample=crash-diet")
    answer(visitor)
    found += findings(visitor)
    for tab in ("JSON", "Command", "Link"):
        visitor.page.get_by_role("tab", name=tab).click()
        visitor.settle()
    found += findings(visitor)
    assert not found, "\n\n".join(found)
