"""Memory of the server: started, with five sessions, with the starter loaded, and while it scores a batch.

    python benchmarks/server_memory.py [--rows 2000] [--sessions 5] [--app-option=--server.X=Y ...]

Starts `streamlit run app.py` in a process of its own, opens browser sessions on the Playground (Playwright and an
installed Chromium), classifies a sample in the first, and uploads a batch in the last. Rows are the project's own
labelled exchanges, every k-th of them, or all of them again and again with a number behind each response.

RSS is what counts against a container's limit at most: it includes pages of files (libraries, weights) that the system
may drop. USS is the server's alone. Both are read from /proc every 0.2 s, so this runs on Linux only. Settings from the
environment (MALLOC_ARENA_MAX=2, OMP_NUM_THREADS=2) reach the server. Exit code 1 when the peak misses the aim.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from refusal_core import limits  # noqa: E402
from refusal_core.samples import SAMPLES  # noqa: E402
from refusal_core.versions import versions  # noqa: E402

AIM = limits.GB
EVERY_SECONDS = 0.2
REST_SECONDS = 3.0  # before the figure of a stage is taken
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WATCHED = ("MALLOC_", "OMP_", "MKL_", "GLIBC_", "PYTHON")


@dataclass(frozen=True)
class Memory:
    """Bytes: all resident pages, this process's share of them, and those of no other process."""

    rss: int
    pss: int
    uss: int

    @classmethod
    def of(cls, process: int) -> Memory:
        found: dict[str, int] = {}
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]:
            name, size = line.split()[:2]
            found[name.rstrip(":")] = int(size) * 1024
        return cls(found["Rss"], found["Pss"], found["Private_Clean"] + found["Private_Dirty"])

    def __str__(self) -> str:
        return f"{self.rss / limits.MB:>9,.0f}{self.pss / limits.MB:>9,.0f}{self.uss / limits.MB:>9,.0f}"


class Sampler(threading.Thread):
    """Reads the memory of a process until `stop`; `peak` holds the largest of each since `reset`."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process, self._end = process, threading.Event()
        self.reset()

    def reset(self) -> None:
        self.peak, self.samples = Memory(0, 0, 0), 0

    def run(self) -> None:
        while not self._end.wait(EVERY_SECONDS):
            try:
                now = Memory.of(self._process)
            except (OSError, KeyError):  # it has ended
                return
            last = self.peak
            self.peak = Memory(max(last.rss, now.rss), max(last.pss, now.pss), max(last.uss, now.uss))
            self.samples += 1

    def stop(self) -> None:
        self._end.set()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--sessions", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=15, help="until a batch that does not end is given up")
    parser.add_argument("--app-option", action="append", default=[], help="handed to `streamlit run`")
    args = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None or not Path("/proc/self/smaps_rollup").exists():
        parser.error("this needs Linux with Chromium or Chrome installed (apt-get install chromium)")
    print(", ".join(f"{name} {version}" for name, version in versions().items()))
    if set_here := [f"{name}={value}" for name, value in os.environ.items() if name.startswith(WATCHED)]:
        print("environment:", ", ".join(set_here))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server ends with this program
    with tempfile.TemporaryDirectory() as folder:
        server, address = start(Path(folder), args.app_option)
        try:
            return measure(server, address, browser, args)
        finally:
            server.terminate()
            server.wait(timeout=20)


def measure(server: subprocess.Popen, address: str, browser: str, args: argparse.Namespace) -> int:
    from playwright.sync_api import sync_playwright

    def stage(name: str) -> None:
        time.sleep(REST_SECONDS)
        print(f"{name:<34}{Memory.of(server.pid)}", flush=True)

    rows = batch(args.rows)
    print(f"batch: {args.rows:,} rows, {limits.show_bytes(len(rows))} of JSONL; {args.sessions} sessions")
    print(f"{'MB':<34}{'RSS':>9}{'PSS':>9}{'USS':>9}")
    stage("after start")
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser, headless=True, args=FLAGS)
        pages = [running.new_context().new_page() for _ in range(args.sessions)]
        for page in pages:
            page.goto(f"{address}/Playground")
            page.get_by_role("textbox", name="Prompt").wait_for(timeout=60_000)
            settle(page)
        stage(f"with {args.sessions} sessions")
        sample = SAMPLES["fix-it"].title
        pages[0].get_by_role("button", name=sample).or_(pages[0].get_by_role("radio", name=sample)).click()
        pages[0].get_by_role("heading", level=2).wait_for(timeout=120_000)
        settle(pages[0])
        stage("with the starter loaded")
        sampler = Sampler(server.pid)
        sampler.start()
        seconds = timed(lambda: score(pages[-1], address, rows, args))
        sampler.stop()
        sampler.join()
        print(f"{'peak during the batch':<34}{sampler.peak}")
        stage("after the batch")
        running.close()
    print(f"the batch took {seconds:.0f} s from its upload to its page; {sampler.samples:,} samples")
    reached = sampler.peak.rss < AIM
    print(f"aim: a peak RSS under {limits.show_bytes(AIM)}: {'yes' if reached else 'no'}")
    return 0 if reached else 1


def score(page, address: str, rows: bytes, args: argparse.Namespace) -> None:
    """Upload `rows` in the Batch view and wait for the page of their result."""
    page.goto(f"{address}/Playground?batch=new")
    page.locator("input[type=file]").wait_for(state="attached", timeout=60_000)
    settle(page)
    page.locator("input[type=file]").set_input_files({"name": "rows.jsonl", "mimeType": "text/plain", "buffer": rows})
    page.get_by_role("button", name="Classify the file").click(timeout=60_000)
    answer = page.get_by_role("heading", level=2, name=re.compile(rf"n = {args.rows:,}\)"))
    answer.wait_for(timeout=args.minutes * 60_000)
    settle(page)


def settle(page) -> None:
    """Wait until no script runs."""
    page.wait_for_timeout(200)
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=60_000)


def batch(count: int) -> bytes:
    """`count` rows of mixed length as JSONL, no two alike."""
    files = sorted((ROOT / "refusal_core" / "training" / "corpus").glob("*.jsonl"))
    texts = (line for file in files for line in file.read_text("utf-8").splitlines())
    found = [row for row in map(json.loads, texts) if "response" in row]
    lines = []
    for n in range(count):
        again, place = divmod(n, len(found))
        if count < len(found):
            place = n * len(found) // count
        row = found[place]
        response = row["response"] + (f" ({again + 1})" if again else "")
        line = {"id": n, "prompt": row.get("prompt", ""), "response": response, "label": row.get("label")}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def start(folder: Path, app_options: list[str]) -> tuple[subprocess.Popen, str]:
    """The app on a free port of the loopback address, healthy, with nothing below its data root."""
    (folder / "data").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"REFUSAL_DATA": str(folder / "data"), "REFUSAL_STORE": f"sqlite:///{folder / 'store.sqlite'}"}
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true", *app_options]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", *options],
            cwd=ROOT,
            env={**os.environ, **settings, "HF_HUB_OFFLINE": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    address, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.read() == b"ok":
                    return server, address
        except OSError:
            time.sleep(0.1)
    server.kill()
    raise SystemExit("the app did not start:\n" + (folder / "server.log").read_text(errors="replace"))


def timed(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
