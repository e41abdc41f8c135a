"""What every test shares: no network, and small checkpoints built once a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkpoints import make_checkpoint
from tests.guard import network_guard

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

_REFUSED: list[str] = []
network_guard.install(_REFUSED.append)

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def refused_addresses() -> Iterator[list[str]]:
    """What this process reached for beyond this machine: a test that did fails, whatever became of the error."""
    yield _REFUSED
    asked = _REFUSED.copy()
    _REFUSED.clear()
    assert not asked, "the test's process reached for another machine"


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory) -> Path:
    """A random five-class BERT of two layers that reads at most 128 tokens."""
    return make_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny-bert")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Labelled data that may lie beside the repository; it is no part of it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data is not beside the repository: its rows are not tested here")
    return SHARED_DATA
