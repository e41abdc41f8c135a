"""What the tests of the Batch view share: opening it, waiting for a batch, files to upload."""

from __future__ import annotations

import json

from streamlit.testing.v1 import AppTest

from ui import cache, state
from ui.batch_inputs import PROBLEM, RUNNING, SHOWN
from ui.batches import Task

ROWS = [
    {"id": f"r{n}", "prompt": f"What is version {n}?", "response": text, "label": label, "team": team}
    for n, (text, label, team) in enumerate(
        [
            ("I cannot help with that.", "full_refusal", "a"),
            ("The version is a.", "compliant", "a"),
            ("Which version?", "clarification", "b"),
            ("I can't do that, sorry.", "full_refusal", "b"),
        ]
    )
]


def jsonl(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def value_of(app: AppTest, key: str):
    """Of the session; None where there is none, for which AppTest has no get."""
    return app.session_state[key] if key in app.session_state else None  # noqa: SIM401


def finish(app: AppTest) -> AppTest:
    """Run until no batch of this session is under way."""
    for _ in range(100):
        running = value_of(app, RUNNING)
        if running is None:
            return app
        cache.batches().get(running).watch(10)
        app.run()
        assert not app.exception
    raise AssertionError("the batch did not end")


def upload(app: AppTest, data: bytes, name: str = "rows.jsonl") -> AppTest:
    app.file_uploader(key=state.BATCH_UPLOAD).upload(name, data, "application/octet-stream").run()
    assert not app.exception
    return app


def score(app: AppTest, data: bytes, name: str = "rows.jsonl") -> AppTest:
    """Upload a file and have it scored."""
    upload(app, data, name)
    app.button(key="batch_go").click().run()
    assert not app.exception
    return finish(app)


def task_of(app: AppTest) -> Task:
    return cache.batches().get(app.session_state[SHOWN])


def problem_of(app: AppTest) -> str | None:
    return value_of(app, PROBLEM)


def select(app, row: int):
    """Select a row of the table of rows, and run."""
    [key] = [frame.key for frame in app.dataframe if (frame.key or "").startswith("batch_selected_")]
    app.session_state[key] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    app.run()
    assert not app.exception
    return app


def table(app):
    """The table of rows: the one with both texts."""
    return next(frame.value for frame in app.dataframe if "prompt" in frame.value)
