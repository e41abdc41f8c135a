"""Files and steps that the tests of the Direction study share."""

from __future__ import annotations

import time

import numpy as np
from streamlit.testing.v1 import AppTest

from refusal_core.direction.record import Record
from tests.activation_files import npz_bytes, planted
from tests.app.batch_cases import value_of
from ui import cache, state
from ui.study_view import PROBLEM, RUNNING, SHOWN

STUDY = "pages/4_Direction_study.py"
SIZES = {"n": 48, "d": 8, "categories": 8, "signal": 1.0}
TRAIN, TEST = planted(seed=0, **SIZES), planted(seed=1, prefix="test", **SIZES)


def npz(members: dict, **changed: object) -> bytes:
    """The members as a file; a member changed to None is left out."""
    return npz_bytes({key: value for key, value in {**members, **changed}.items() if value is not None})


def upload(
    app: AppTest, train: bytes | None = None, test: bytes | None = None, names=("train.npz", "test.npz")
) -> AppTest:
    for role, content, name in (("train", train, names[0]), ("test", test, names[1])):
        if content is not None:
            app.file_uploader(key=state.STUDY_UPLOAD[role]).upload(name, content, "application/zip")
    app.run()
    assert not app.exception
    return app


def finish(app: AppTest, seconds: float = 60) -> AppTest:
    """Run until nothing is under way."""
    until = time.monotonic() + seconds
    while value_of(app, RUNNING) and time.monotonic() < until:
        time.sleep(0.02)
        app.run()
    assert not app.exception
    return app


def press(app: AppTest, key: str = "study_go") -> AppTest:
    app.button(key=key).click().run()
    return finish(app)


def few(app: AppTest, repeats: int = 19) -> AppTest:
    """As many shuffles as a test needs."""
    app.number_input(key=state.STUDY_REPEATS).set_value(repeats)
    return app


def studied(app: AppTest, train: bytes | None = None, test: bytes | None = None) -> AppTest:
    """Upload both files and run."""
    upload(app, train or npz(TRAIN), test or npz(TEST))
    return press(few(app))


def record(app: AppTest) -> Record:
    """The study on screen."""
    return cache.studies().get(app.session_state[SHOWN]).result


def problem_of(app: AppTest) -> str | None:
    return value_of(app, PROBLEM)


def has_button(app: AppTest, key: str) -> bool:
    return key in [button.key for button in app.button]


def textual(labels: np.ndarray) -> np.ndarray:
    return np.array(["complied", "refused"])[labels]
