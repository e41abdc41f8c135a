"""Pictures of every page and state in light and dark, wide and narrow, for eyes to judge. Not a test:

python -m tests.browser.screenshots [FOLDER]        writes PNG files, by default into test-screenshots/
python -m tests.browser.screenshots --docs          takes the pictures of docs/ anew, from the samples that ship
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.conftest import BROWSERS, FLAGS, ROOT, WAIT_MS, Visitor, serve

HEIGHT = 1500  # the page scrolls inside the window, so that a full-page picture needs a tall one
LOOKS = [(scheme, width) for width in (1280, 390) for scheme in ("light", "dark")]


def main(folder: Path) -> None:
    """Every state of every page into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with app() as (running, address):
        for scheme, width in LOOKS:
            context = running.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)
            for state, page in states(Visitor(context.new_page(), address)):
                page.wait_for_timeout(800)  # until skeletons and the figure have given way
                page.screenshot(path=folder / f"{state}-{scheme}-{width}.png")
            context.close()


def docs() -> None:
    """The pictures that README and docs show."""
    with app() as (running, address):
        context = running.new_context(viewport={"width": 1280, "height": HEIGHT}, color_scheme="light")
        for name, height, page in pictures(Visitor(context.new_page(), address)):
            page.wait_for_timeout(1_500)
            page.screenshot(path=ROOT / "docs" / f"{name}.png", clip={"x": 0, "y": 0, "width": 1280, "height": height})
        context.close()


@contextlib.contextmanager
def app():
    """A browser, and the address of the app without any data of its own."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"No browser found; looked for {', '.join(BROWSERS)}.")
    with tempfile.TemporaryDirectory() as empty, sync_playwright() as driver:
        server = contextlib.contextmanager(serve)(Path(empty) / "server.log", Path(empty))
        with (
            server as address,
            contextlib.closing(driver.chromium.launch(executable_path=browser, args=FLAGS)) as running,
        ):
            yield running, address


def pictures(visitor: Visitor):
    """Name, height in pixels, and the page as it is shown in the docs."""
    page = visitor.open("/Playground?sample=crash-diet")
    drawn(page, visitor)
    yield "playground", 900, page
    page = visitor.open("/Playground?batch=sample")
    drawn(page, visitor)
    yield "batch", 1400, page
    page = visitor.open("/Training_runs?runs=sample:starter")
    expect(page.locator(".js-plotly-plot .scatterlayer").first).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    yield "training_runs", 1400, page
    page = visitor.open("/Training_runs?runs=sample:starter&tab=Classes&cell=full_refusal%0Apartial_refusal")
    expect(page.get_by_text("the surest first")).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("tab", name="Link").scroll_into_view_if_needed()
    page.get_by_text("the surest first").scroll_into_view_if_needed()
    visitor.settle()
    yield "training_runs_classes", HEIGHT, page
    page = visitor.open("/Scorecard?suite=sample:starter")
    expect(page.get_by_role("heading", level=2)).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    yield "scorecard", 1400, page
    page = visitor.open("/Direction_study?study=sample")
    drawn(page, visitor)
    yield "direction_study", HEIGHT, page
    page = visitor.open("/Search_demonstration?seeds=20&budget=200&fanout=4&noise=0")
    expect(page.get_by_role("heading", level=2)).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    yield "search_demonstration", 1380, page


def states(visitor: Visitor):
    """Each state's name with the page in that state."""
    yield "overview", visitor.open("/")
    yield "playground-empty", visitor.open("/Playground")
    page = visitor.open("/Playground?sample=crash-diet")
    drawn(page, visitor)
    yield "playground-good", page
    page.get_by_role("tab", name="Command").click()
    yield "playground-command", page
    page.get_by_role("textbox", name="Prompt").fill("")
    page.get_by_role("textbox", name="Response").fill("<think>It never ends")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("ends inside its reasoning")).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    yield "playground-error", page
    yield "study-empty", visitor.open("/Direction_study")
    page = visitor.open("/Direction_study?study=sample")
    drawn(page, visitor)
    yield "study-good", page
    for tab in ("Geometry", "Interval and plan", "Numbers", "Store and share", "Against another direction"):
        page.get_by_role("tab", name=tab).click()
        visitor.settle()
        yield f"study-{tab.split()[-1].lower()}", page
    page.get_by_role("tab", name="Over the layers").click()
    page.get_by_role("button", name="Sweep the layers").click()
    expect(page.get_by_text("is the best of 4")).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    yield "study-layers", page
    yield "search-empty", visitor.open("/Search_demonstration")
    for state, noise in (("search-good", "0"), ("search-noisy", "0.5")):
        page = visitor.open(f"/Search_demonstration?seeds=20&budget=200&fanout=4&noise={noise}")
        expect(page.get_by_role("heading", level=2)).to_be_visible(timeout=WAIT_MS)
        visitor.settle()
        yield state, page
    yield "runs-empty", visitor.open("/Training_runs")
    for state, tab in (("runs-card", "Classes"), ("runs-checkpoints", "Checkpoints")):
        page = visitor.open(f"/Training_runs?runs=sample:{'card' if tab == 'Classes' else 'starter'}&tab={tab}")
        visitor.settle()
        yield state, page
    yield "scorecard-empty", visitor.open("/Scorecard")
    page = visitor.open("/Scorecard?suite=sample:starter")
    expect(page.get_by_role("heading", level=2)).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(".js-plotly-plot .scatterlayer").first).to_be_visible(timeout=WAIT_MS)
    visitor.settle()
    yield "scorecard-good", page
    for tab in ("Sign-off", "History", "Checkpoints"):
        page.get_by_role("tab", name=tab).click()
        yield f"scorecard-{tab.lower()}", page
    yield "batch-empty", visitor.open("/Playground?batch=new")
    page = visitor.open("/Playground?batch=sample")
    drawn(page, visitor)
    yield "batch-good", page
    for tab in ("Scores", "Compare", "Downloads"):
        page.get_by_role("tab", name=tab).click()
        yield f"batch-{tab.lower()}", page


def drawn(page: Page, visitor: Visitor) -> None:
    expect(page.get_by_role("heading", level=2)).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(".js-plotly-plot .bars").first).to_be_visible(timeout=WAIT_MS)
    visitor.settle()


if __name__ == "__main__":
    if sys.argv[1:] == ["--docs"]:
        docs()
        sys.exit()
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "test-screenshots")
