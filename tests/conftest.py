"""What every test shares: no network, and small checkpoints built once a session."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.checkpoints import make_checkpoint

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory) -> Path:
    """A random five-class BERT of two layers that reads at most 128 tokens."""
    return make_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny-bert")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The labelled data that lies beside the repository on the team's machines."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data is not beside the repository: its rows are not tested here")
    return SHARED_DATA
