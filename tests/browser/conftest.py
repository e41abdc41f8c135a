"""One server on a free port and one Chromium for all browser tests; they are skipped aloud where no Chromium is."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
START_SECONDS = 60
WAIT_MS = 60_000  # for the first classification, which loads the checkpoint
# A busy machine is slow, not wrong: every expectation waits as long as the longest one may.
playwright_api.expect.set_options(timeout=WAIT_MS)


@dataclass
class Visitor:
    """A page in a browser session of its own, with what went wrong in it."""

    page: playwright_api.Page
    base: str
    outside: list[str] = field(default_factory=list)  # requests that left the machine
    errors: list[str] = field(default_factory=list)  # of the console

    def open(self, path: str = "/") -> playwright_api.Page:
        """Go to `path` and wait until the page is drawn."""
        self.page.goto(self.base + path)
        playwright_api.expect(self.page.locator("h1")).to_be_visible(timeout=WAIT_MS)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until no script runs."""
        self.page.wait_for_timeout(150)  # until the browser has sent what was clicked
        resting = self.page.locator("[data-testid=stApp][data-test-script-state=notRunning]")
        playwright_api.expect(resting).to_have_count(1, timeout=WAIT_MS)


@pytest.fixture(scope="session")
def server_log(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("server") / "server.log"


@pytest.fixture(scope="session")
def server(server_log, tiny_checkpoint) -> Iterator[str]:
    """The app on a free port of the loopback address."""
    yield from serve(server_log, tiny_checkpoint.parent)


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright_api.Browser]:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser found; looked for {', '.join(BROWSERS)} (apt-get install chromium)")
    with playwright_api.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, headless=True, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def visit(browser, server, server_log) -> Iterator[Callable[..., Visitor]]:
    """Makes visitors, sessions of a width and a colour scheme; none may cause an error or a request to elsewhere."""
    visitors: list[Visitor] = []

    def visitor(*, width: int = 1280, scheme: str = "light") -> Visitor:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        new = Visitor(context.new_page(), server)
        new.page.on("request", lambda request: is_outside(request.url) and new.outside.append(request.url))
        new.page.on("console", lambda said: is_ours(said) and new.errors.append(said.text))
        new.page.on("pageerror", lambda error: new.errors.append(str(error)))
        visitors.append(new)
        return new

    yield visitor
    for one in visitors:
        one.page.context.close()
    assert not [url for one in visitors for url in one.outside]
    assert refused_by_server(server_log) == []
    assert not [error for one in visitors for error in one.errors]


def is_outside(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:"))


def is_ours(said: playwright_api.ConsoleMessage) -> bool:
    """An error that the app caused. On a deep link Streamlit looks for its own address and meets two 404."""
    place = (said.location or {}).get("url", "")
    return said.type == "error" and not ("404" in said.text and "/_stcore/" in place)


def refused_by_server(log: Path) -> list[str]:
    """What the server reached for beyond this machine; its guard has written the file at its start."""
    return log.with_suffix(".refused").read_text().splitlines()


def serve(log: Path, data: Path) -> Iterator[str]:
    """Start the app, wait until it is healthy, give its address, stop it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    guard = {"PYTHONPATH": str(ROOT / "tests" / "guard"), "REFUSED_ADDRESSES": str(log.with_suffix(".refused"))}
    store = {"REFUSAL_STORE": f"sqlite:///{log.with_name('store.sqlite')}"}
    settings = {"REFUSAL_DATA": str(data), "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", **store, **guard}
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}", process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()


def wait_until_healthy(address: str, process: subprocess.Popen, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.read() == b"ok":
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"the app did not start:\n{log.read_text(errors='replace')}")
