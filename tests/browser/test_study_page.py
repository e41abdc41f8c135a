"""The Direction study in a real browser: upload, run, read, download the bytes of the command; sample, link, phone."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

from refusal_core import study as command  # noqa: E402
from tests.activation_files import npz_bytes, planted  # noqa: E402
from tests.browser.conftest import WAIT_MS, Visitor  # noqa: E402
from tests.browser.test_pages import findings  # noqa: E402
from ui import study as logic  # noqa: E402

SIZES = {"n": 60, "d": 16, "categories": 10, "signal": 1.0}


def answer(visitor: Visitor, text: str = "Balanced accuracy"):
    heading = visitor.page.get_by_role("heading", level=2, name=re.compile(text))
    expect(heading).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    return heading


def give(visitor: Visitor, place: int, name: str, content: bytes) -> None:
    box = visitor.page.locator("input[type=file]").nth(place)
    box.set_input_files({"name": name, "mimeType": "application/zip", "buffer": content})
    expect(visitor.page.get_by_text(name).first).to_be_visible()
    visitor.settle()


def downloaded(visitor: Visitor, name: str) -> bytes:
    with visitor.page.expect_download(timeout=WAIT_MS) as waiting:
        visitor.page.get_by_role("button", name=f"Download {name}", exact=True).click()
    assert waiting.value.suggested_filename == name
    return Path(waiting.value.path()).read_bytes()


def test_upload_run_read_and_download_the_bytes_of_the_command(visit, tmp_path):
    visitor = visit()
    page = visitor.open("/Direction_study")
    expect(page.get_by_text("Use the sample, or give two activation exports")).to_be_visible()
    files = {"train.npz": npz_bytes(planted(**SIZES)), "test.npz": npz_bytes(planted(seed=1, prefix="test", **SIZES))}
    for place, (name, content) in enumerate(files.items()):
        (tmp_path / name).write_bytes(content)
        give(visitor, place, name, content)
    page.get_by_text("the prompt is harmful", exact=True).click()
    page.get_by_label("Shuffles").fill("49")
    page.get_by_role("button", name="Run the study").click()  # with the number not yet committed
    said = answer(visitor, "of 49 label shuffles").inner_text()
    output = tmp_path / "study.json"
    options = ["--label-means=harmful", "--repeats=49", "--seed=0", f"--output={output}"]
    assert command.main([str(tmp_path / "train.npz"), str(tmp_path / "test.npz"), *options]) == 0
    page.get_by_role("tab", name="Downloads").click()
    written = output.read_bytes()
    assert downloaded(visitor, "study.json") == written and json.loads(written)["headline"] == said
    for name in ("projections.csv", "direction.npy", "direction.json", "direction.safetensors", "study.html"):
        assert downloaded(visitor, name), name
    give(visitor, 1, "bad.npz", b"<!doctype html>")
    expect(page.get_by_text("the file is a web page")).to_be_visible()
    assert answer(visitor).inner_text() == said
    give(visitor, 1, "again.npz", files["test.npz"])
    expect(page.get_by_label("Shuffles")).to_have_value("49")  # kept while the box was away
    page.get_by_role("tab", name="Store and share").click()
    page.get_by_role("button", name="Store this study").click()
    expect(page).to_have_url(re.compile(r"study=[0-9a-f]{64}$"), timeout=WAIT_MS)
    there = visit(width=390)
    there.open(page.url.removeprefix(there.base))
    assert answer(there).inner_text() == said


def test_the_sample_in_one_click_in_any_width_and_light(visit):
    for scheme, width in (("light", 1280), ("dark", 390)):
        visitor = visit(width=width, scheme=scheme)
        page = visitor.open("/Direction_study")
        begun = time.monotonic()
        page.get_by_role("button", name="Use the sample").click()
        expect(page.get_by_role("heading", level=2)).to_be_visible(timeout=WAIT_MS)
        print(f"the sample took {time.monotonic() - begun:.1f} s at a width of {width}")
        answer(visitor)
        expect(page.get_by_label(re.compile("Histogram of the projections"))).to_be_visible()
        for tab in ("ROC", "Geometry", "Interval and plan", "Store and share"):
            page.get_by_role("tab", name=tab).click()
            visitor.settle()
            wide = page.evaluate(
                "[document.documentElement, document.querySelector('[data-testid=stMain]')]"
                ".map(part => part.scrollWidth - part.clientWidth)"
            )
            assert wide == [0, 0], tab
        found = findings(visitor)
        assert not found, "\n\n".join(found)
        assert logic.SAMPLE_SAYS in page.locator("body").inner_text()
