"""What tests of the core share."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import settings

from refusal_core.classifier import Classifier, load
from tests.checkpoints import lively, make_checkpoint

# No test is timed: a slow machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def no_network(monkeypatch):
    """Fails a test that uses the network; libraries may swallow the error that they are given."""
    asked = []

    def refuse(*args, **kwargs):
        asked.append(args)
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield
    assert asked == []


@pytest.fixture
def copy(tiny_checkpoint, tmp_path) -> Path:
    """A copy of the tiny checkpoint that a test may change."""
    return Path(shutil.copytree(tiny_checkpoint, tmp_path / "broken"))


@pytest.fixture(scope="session")
def lively_checkpoint(tmp_path_factory) -> Path:
    """A random five-class BERT whose answers differ from text to text."""
    return lively(make_checkpoint(tmp_path_factory.mktemp("lively") / "it"))


@pytest.fixture(scope="session")
def classifier(lively_checkpoint) -> Classifier:
    return load(str(lively_checkpoint))
