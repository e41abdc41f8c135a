"""The Batch view in a real browser: upload, filter, relabel, stop, download, reload, two visitors at once."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

from tests.browser.conftest import WAIT_MS, Visitor  # noqa: E402
from tests.browser.test_pages import findings  # noqa: E402

ROWS = [
    {"prompt": f"Question {n}?", "response": f"I cannot help with {n}.", "label": "full_refusal", "team": f"t{n % 2}"}
    for n in range(6)
]


def jsonl(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def open_batch(visitor: Visitor):
    """The Batch view with the small checkpoint, whose answers cost nothing."""
    page = visitor.open("/Playground?batch=new")
    page.get_by_label("Checkpoint").first.click()
    page.get_by_role("option", name="tiny-bert").click()
    visitor.settle()
    return page


def upload(visitor: Visitor, rows: bytes, name: str = "rows.jsonl"):
    page = visitor.page
    page.locator("input[type=file]").set_input_files({"name": name, "mimeType": "text/plain", "buffer": rows})
    visitor.settle()
    page.get_by_role("button", name="Classify the file").click()


def answered(visitor: Visitor, n: int) -> None:
    expect(visitor.page.get_by_role("heading", level=2, name=re.compile(rf"n = {n:,}\)"))).to_be_visible(
        timeout=WAIT_MS
    )
    visitor.settle()


def select(visitor: Visitor, row: int) -> None:
    """Click the box of a row, from 0: the table is a canvas."""
    table = visitor.page.get_by_test_id("stDataFrame").filter(visible=True).last
    table.scroll_into_view_if_needed()
    table.click(position={"x": 18, "y": 35 + 35 * row + 17})
    visitor.settle()


def downloaded(visitor: Visitor, name: str) -> bytes:
    with visitor.page.expect_download(timeout=WAIT_MS) as found:
        visitor.page.get_by_role("button", name=name).click()
    return found.value.path().read_bytes()


def test_upload_filter_relabel_download_reload(visit):
    visitor = visit()
    page = open_batch(visitor)
    upload(visitor, jsonl(ROWS) + b"broken\n")
    answered(visitor, 6)
    expect(page.get_by_text("Line 7:")).to_be_visible()
    page.get_by_role("textbox", name="Text contains").fill("help with 4")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 of 7 rows")).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    select(visitor, 0)
    expect(page.get_by_text("Line 5, id 5")).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("textbox", name="Your name").fill("ana")
    page.get_by_role("button", name="clarification").or_(page.get_by_role("radio", name="clarification")).last.click()
    visitor.settle()
    page.get_by_role("button", name="Save this label").click()
    expect(page.get_by_text("Saved among the corrections")).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    page.get_by_role("tab", name="Downloads").click()
    rows = list(csv.DictReader(io.StringIO(downloaded(visitor, "Download CSV").decode())))
    assert [row["corrected to"] for row in rows] == [""] * 4 + ["clarification"] + [""] * 2
    lines = [json.loads(line) for line in downloaded(visitor, "Download JSONL").splitlines()]
    assert [line["id"] for line in lines] == [1, 2, 3, 4, 5, 6, 7] and lines[6]["label"] is None
    report = downloaded(visitor, "Download HTML report").decode()
    assert "<script" not in report and "n = 6)" in report
    expect(page).to_have_url(re.compile(r"batch=[\w-]{22}"))
    page.reload()
    answered(visitor, 6)
    expect(page.get_by_text("rows.jsonl, scored by tiny-bert")).to_be_visible()


def test_stop_keeps_what_is_done(visit):
    visitor = visit()
    page = open_batch(visitor)
    long = "word " * 60
    upload(visitor, jsonl([{"prompt": "p", "response": f"{n} {long}"} for n in range(20_000)]))
    thousands = re.compile(r"[\d,]+,\d{3} of 20,000 rows, .* left")  # parts of 128 rows are kept when they are whole
    expect(page.get_by_text(thousands)).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="Stop and keep what is done").click()
    expect(page.get_by_text(re.compile(r"Stopped: [\d,]+ of 20,000 rows"))).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    page.get_by_role("tab", name="Downloads").click()
    lines = downloaded(visitor, "Download JSONL").splitlines()
    assert 0 < len(lines) < 20_000


def test_two_visitors_score_at_once_and_keep_apart(visit):
    one, other = visit(), visit()
    for visitor, n in ((one, 3), (other, 5)):
        open_batch(visitor)
        upload(visitor, jsonl(ROWS[:n]), f"rows{n}.jsonl")
    answered(one, 3)
    answered(other, 5)
    expect(one.page.get_by_text("rows5.jsonl")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screen_readers_and_contrast(visit, scheme):
    visitor = visit(scheme=scheme)
    page = open_batch(visitor)
    upload(visitor, jsonl(ROWS))
    answered(visitor, 6)
    found = findings(visitor)
    select(visitor, 1)
    found += findings(visitor)
    for tab in ("Scores", "Compare", "Downloads", "Link"):
        page.get_by_role("tab", name=tab).click()
        visitor.settle()
        found += findings(visitor)
    assert not found, "\n\n".join(dict.fromkeys(found))


def test_a_phone_shows_the_whole_view(visit):
    visitor = visit(width=390)
    page = visitor.open("/Playground?batch=new")
    upload(visitor, jsonl(ROWS))
    answered(visitor, 6)
    for tab in ("Rows", "Scores", "Compare", "Downloads"):
        page.get_by_role("tab", name=tab).click()
        visitor.settle()
        wide = page.evaluate(
            "[document.documentElement, document.querySelector('[data-testid=stMain]')]"
            ".map(part => part.scrollWidth - part.clientWidth)"
        )
        assert wide == [0, 0], tab
