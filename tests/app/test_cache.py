import threading
from types import SimpleNamespace

import pytest

import refusal_core.classifier
from refusal_core.errors import InputError, WorkError
from tests.app.conftest import classify
from ui import cache
from ui.checkpoints import Choice


@pytest.fixture
def loads(monkeypatch) -> list[str]:
    """The names that were loaded, in order; the real loader does the work."""
    names, load = [], refusal_core.classifier.load

    def counted(name):
        names.append(name)
        return load(name)

    monkeypatch.setattr(refusal_core.classifier, "load", counted)
    return names


def test_reruns_and_sessions_share_one_load(playground, loads, tiny_checkpoint):
    first, second = playground(), playground()
    for number in range(5):
        classify(first, "Hi", f"Hello {number}")
        classify(second, "Hi", f"Hello again {number}")
        first.run()
    assert loads == [str(tiny_checkpoint)]


def test_parallel_first_loads_build_once(monkeypatch):
    begun, built = threading.Barrier(8), []

    def slow(name):
        built.append(name)
        threading.Event().wait(0.2)
        return SimpleNamespace(info=SimpleNamespace(name=name))

    monkeypatch.setattr(refusal_core.classifier, "load", slow)
    got = []

    def session():
        begun.wait()
        got.append(cache.load_classifier(Choice("owner/name@main", "owner/name@main", "hub")).classifier)

    sessions = [threading.Thread(target=session) for _ in range(8)]
    for thread in sessions:
        thread.start()
    for thread in sessions:
        thread.join()
    assert built == ["owner/name@main"] and len({id(one) for one in got}) == 1


def test_only_the_latest_is_held(loads, tiny_checkpoint, own_labels_checkpoint):
    one, other = (Choice(str(path), path.name, "directory") for path in (tiny_checkpoint, own_labels_checkpoint))
    cache.load_classifier(one)
    assert cache.loaded_info(one) is not None and cache.loaded_info(other) is None
    cache.load_classifier(other)
    assert cache.loaded_info(one) is None and cache.loaded_info(other) is not None
    cache.load_classifier(one)
    assert len(loads) == 3


def test_failures_are_sentences_and_are_tried_again(monkeypatch):
    raised = iter(
        [FileNotFoundError(), PermissionError(13, "Permission denied"), MemoryError(), InputError("it is wrong")]
    )

    def fails(name):
        raise next(raised)

    monkeypatch.setattr(refusal_core.classifier, "load", fails)
    choice = Choice("owner/name@main", "owner/name@main", "hub")
    for expected in (WorkError, WorkError, WorkError, InputError):
        with pytest.raises(expected, match="not there|could not be read|not enough memory|it is wrong"):
            cache.load_classifier(choice)
