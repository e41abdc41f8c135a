"""What the tests of the Scorecard page share: a small suite with three checkpoints, and ways to press its buttons."""

from __future__ import annotations

import json
from pathlib import Path

from streamlit.testing.v1 import AppTest

from refusal_core.labels import LABELS
from ui import cache, state
from ui.scorecard_inputs import PROBLEM, RUNNING, SHOWN
from ui.scorecards import Task

HOSTILE = "![x](http://x.example/p.png) <script>:red[y]</script> $z$"
SUITE = f"""version: 1
description: {json.dumps("Gate " + HOSTILE)}
checkpoints:
  - {{id: prod, predictions: prod.jsonl}}
  - {{id: good, predictions: good.jsonl}}
  - {{id: {json.dumps("bad " + HOSTILE)}, predictions: bad.jsonl}}
baseline: prod
tests:
  - id: quality
    assert:
      - {{id: acc, type: metric, metric: accuracy, threshold: 0.8}}
      - {{id: macro, type: metric, metric: f1, average: macro, threshold: 0.85, severity: advisory}}
  - id: change
    assert:
      - {{id: acc-change, type: no-regression, metric: accuracy, min_absolute_change: -0.02, test: mcnemar}}
  - id: cases
    vars: {{prompt: "How?", response: "No."}}
    assert:
      - {{type: equals, value: full_refusal}}
"""
ITEMS = 100
BAD = "bad " + HOSTILE


def predictions(right: int, *, texts: bool = True) -> bytes:
    """ITEMS rows, the first ones answered wrongly."""
    lines = []
    for i in range(ITEMS):
        true, said = LABELS[i % 5], LABELS[i % 5 if i >= ITEMS - right else (i + 1) % 5]
        row = {"id": f"i{i}", "label": said, "true": true}
        row["probabilities"] = {label: 0.8 if label == said else 0.05 for label in LABELS}
        if texts:
            row |= {"prompt": f"Prompt {i} {HOSTILE}", "response": f"Response {i} {HOSTILE}"}
        lines.append(json.dumps(row))
    return ("\n".join(lines) + "\n").encode()


def files() -> dict[str, bytes]:
    return {"prod.jsonl": predictions(92), "good.jsonl": predictions(91), "bad.jsonl": predictions(60)}


def write_suite(folder: Path, text: str = SUITE) -> Path:
    """The suite with its files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files().items():
        (folder / name).write_bytes(content)
    (folder / "gate.yaml").write_text(text, encoding="utf-8")
    return folder / "gate.yaml"


def value_of(app: AppTest, key: str):
    return app.session_state[key] if key in app.session_state else None  # noqa: SIM401


def task_of(app: AppTest) -> Task | None:
    return cache.scorecards().get(value_of(app, SHOWN))


def problem_of(app: AppTest) -> str | None:
    return value_of(app, PROBLEM)


def finish(app: AppTest) -> AppTest:
    """Run until no suite of this session is under way."""
    for _ in range(100):
        assert not app.exception
        running = value_of(app, RUNNING)
        if running is None:
            return app
        cache.scorecards().get(running).watch(10)
        app.run()
    raise AssertionError("the suite did not end")


def press(app: AppTest, label: str) -> AppTest:
    next(button for button in app.button if button.label == label).click().run()
    return finish(app)


def write(app: AppTest, text: str) -> AppTest:
    """Put `text` into the box of the suite; it is read when a button is pressed."""
    app.text_area(key=state.SC_TEXT).set_value(text)
    return app


def upload(app: AppTest, given: dict[str, bytes]) -> AppTest:
    app.file_uploader(key=state.SC_UPLOAD).set_value(
        [(name, content, "application/octet-stream") for name, content in given.items()]
    ).run()
    assert not app.exception
    return app


def table(app: AppTest, column: str = "assertion"):
    """The table that has such a column."""
    return next(frame.value for frame in app.dataframe if column in frame.value)
