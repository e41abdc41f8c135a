"""How the classifier answers: order, batches, options, progress, streams, threads, failures."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core import limits
from refusal_core.classifier import load, portions
from refusal_core.classifier.encode import LONGEST_FIRST
from refusal_core.errors import Cancelled, InputError, RefusalCoreError, WorkError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job
from refusal_core.labels import LABELS
from tests.checkpoints import edit_json, lively, make_checkpoint


@pytest.fixture(scope="module", params=["bert", "modernbert", "roberta", "left"])
def each(request, tmp_path_factory):
    """Classifiers of three architectures, and one whose tokenizer pads on the side that its model cannot take."""
    architecture = "modernbert" if request.param == "left" else request.param
    folder = lively(make_checkpoint(tmp_path_factory.mktemp("each") / request.param, architecture=architecture))
    if request.param == "left":
        edit_json(folder / "tokenizer_config.json", padding_side="left")
    return load(str(folder))


def numbers(answers) -> np.ndarray:
    return np.array([list(answer.probabilities.values()) for answer in answers])


def varied(count: int) -> list[Exchange]:
    words = ["i", "can", "cannot", "help", "sorry", "with", "that", "what", "is", "the", "list", "of", "you"]
    return [
        Exchange(" ".join(words[: i % 9]), " ".join(words[(i + j) % 13] for j in range(1 + i * 17 % 140)), id=i)
        for i in range(count)
    ]


# Order and batches


def test_answers_are_complete_and_in_order(each):
    exchanges = varied(50)
    answers = each.predict(exchanges, batch_size=7)
    assert [answer.id for answer in answers] == list(range(50))
    for answer in answers:
        assert tuple(answer.probabilities) == LABELS
        assert sum(answer.probabilities.values()) == pytest.approx(1, abs=1e-12)
        assert answer.label == max(answer.probabilities, key=answer.probabilities.get)
        assert answer.error is None and answer.tokens.input <= 128


def test_the_batch_changes_an_answer_by_rounding_only(each):
    exchanges = varied(24)
    alone = np.concatenate([numbers(each.predict([exchange])) for exchange in exchanges])
    assert alone.std(axis=0).max() > 0.01  # the answers differ at all
    for size in (5, 24):
        assert np.abs(numbers(each.predict(exchanges, batch_size=size)) - alone).max() < 1e-5
    assert np.abs(numbers(each.predict(exchanges[::-1]))[::-1] - alone).max() < 1e-5


def test_agrees_with_the_library_itself(lively_checkpoint, classifier):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(lively_checkpoint)
    model = AutoModelForSequenceClassification.from_pretrained(lively_checkpoint).eval()
    exchanges = varied(20)
    texts = [e.prompt for e in exchanges], [e.response for e in exchanges]
    with torch.inference_mode():
        inputs = tokenizer(*texts, padding=True, truncation=True, return_tensors="pt")
        expected = torch.softmax(model(**inputs).logits, dim=-1)
    assert numbers(classifier.predict(exchanges, truncation=LONGEST_FIRST)) == pytest.approx(expected.numpy(), abs=1e-5)


def test_temperature_softens_probabilities_and_changes_no_label(lively_checkpoint, classifier, tmp_path):
    warm = shutil.copytree(lively_checkpoint, tmp_path / "warm")
    edit_json(warm / "config.json", temperature=2.5)
    exchanges = varied(20)
    before, after = classifier.predict(exchanges), load(str(warm)).predict(exchanges)
    assert load(str(warm)).info.temperature == 2.5 and classifier.info.temperature == 1.0
    assert [a.label for a in after] == [b.label for b in before]
    softer = numbers(before) ** (1 / 2.5)
    assert numbers(after) == pytest.approx(softer / softer.sum(axis=1, keepdims=True), abs=1e-6)


@given(st.lists(st.integers(1, 128), max_size=60), st.integers(1, 40))
def test_batches_hold_every_row_once_and_are_bounded(lengths, size):
    encoded = {at: type("Pair", (), {"ids": [0] * n})() for at, n in enumerate(lengths)}
    batches = list(portions.batches(encoded, size))
    assert sorted(at for batch in batches for at in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= size
        assert len(batch) == 1 or len(batch) * max(lengths[at] for at in batch) <= limits.PADDED_TOKENS_PER_BATCH


def test_no_exchanges_no_answers(classifier):
    assert classifier.predict([]) == [] and list(classifier.predict_rows([])) == []


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"max_length": 15}, {"max_length": 129}, {"max_length": -1}, {"max_length": 0}, {"max_length": 10**9},
        {"batch_size": 0}, {"batch_size": -3}, {"truncation": "none"}, {"truncation": ""},
    ],
)  # fmt: skip
def test_options_out_of_range_are_one_sentence(classifier, options):
    with pytest.raises(InputError) as caught:
        classifier.predict([Exchange("a", "b")], **options)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError):
        list(classifier.predict_rows([Exchange("a", "b")], **options))


@pytest.mark.parametrize("length", [16, 17, 128])
def test_max_length_is_heeded(classifier, length):
    (answer,) = classifier.predict([Exchange("what is that " * 50, "help " * 300)], max_length=length)
    assert answer.tokens.input == length


# Progress and cancel


def test_progress_counts_every_row(classifier):
    seen = []
    job = Job(show=seen.append, every=0)
    rows = [*varied(9), BadRow(9, 10, "bad."), Exchange("a", ""), BadRow(11, 12, "bad.")]
    job.start(len(rows), "exchanges")
    list(classifier.predict_rows(rows, chunk=4, batch_size=2, job=job))
    assert seen[-1].done == seen[-1].total == 12


def test_cancel_stops_soon(classifier):
    job = Job(show=lambda progress: progress.done >= 4 and job.cancel.set(), every=0)
    job.start(40, "exchanges")
    with pytest.raises(Cancelled):
        classifier.predict(varied(40), batch_size=4, job=job)
    stopped = Job()
    stopped.cancel.set()
    with pytest.raises(Cancelled):
        classifier.predict(varied(1), job=stopped)


# Streams of rows


def test_rows_keep_their_order_and_bad_rows_pass(classifier):
    rows = [BadRow("x", 1, "there is no prompt.") if i % 5 == 2 else exchange for i, exchange in enumerate(varied(30))]
    answers = list(classifier.predict_rows(rows, chunk=7))
    assert [answer.id for answer in answers] == [row.id for row in rows]
    for row, answer in zip(rows, answers, strict=True):
        if isinstance(row, BadRow):
            assert (answer.label, answer.error) == (None, row.error)
        else:
            assert answer.probabilities == pytest.approx(classifier.predict([row])[0].probabilities, abs=1e-5)


def test_rows_are_read_as_needed(classifier):
    taken = []

    def rows():
        for exchange in varied(1_000):
            taken.append(exchange)
            yield exchange

    assert len(list(islice(classifier.predict_rows(rows(), chunk=10), 25))) == 25
    assert len(taken) <= 31


def test_long_rows_are_not_gathered(classifier, monkeypatch):
    """512 responses of 2 MB would be a gigabyte; a few are held at once."""
    held = []

    def count(exchanges, **options):
        held.append(sum(len(exchange.response) for exchange in exchanges))
        return [None] * len(exchanges)

    monkeypatch.setattr(classifier, "predict", count)
    rows = [Exchange("a", "a" * limits.TEXT_CHARACTERS)] * 10 + [Exchange("a", "b")] * 1_000
    assert len(list(classifier.predict_rows(rows))) == 1_010
    assert max(held) <= 2 * limits.TEXT_CHARACTERS and len(held) <= 15


# Threads


def test_many_threads_get_the_same_answers(each):
    exchanges = varied(24)
    expected = numbers(each.predict(exchanges))

    def ask(turn: int) -> float:
        part = slice(turn % 8, 16 + turn % 9)
        return np.abs(numbers(each.predict(exchanges[part], batch_size=1 + turn % 5)) - expected[part]).max()

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(ask, range(32))) < 1e-5


def test_one_forward_pass_at_a_time(classifier, monkeypatch):
    inside, most, model = [], [], classifier._model

    def watched(**inputs):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.002)
        inside.pop()
        return model(**inputs)

    monkeypatch.setattr(classifier, "_model", watched)
    threads = [
        threading.Thread(target=classifier.predict, args=(varied(6),), kwargs={"batch_size": 1}) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 24 and max(most) == 1


# Failures of the model


def test_too_little_memory_is_said(classifier, monkeypatch):
    def fail(**inputs):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 10 bytes")

    monkeypatch.setattr(classifier, "_model", fail)
    with pytest.raises(WorkError, match="lower the batch size"):
        classifier.predict(varied(1))
    monkeypatch.setattr(classifier, "_model", lambda **inputs: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # a fault of ours is not hidden
        classifier.predict(varied(1))


def test_a_model_that_answers_nan_is_refused(classifier, monkeypatch):
    import torch

    for logits in (torch.full((1, 5), float("nan")), torch.full((1, 5), float("inf"))):
        monkeypatch.setattr(
            classifier, "_model", lambda *, logits=logits, **inputs: type("Out", (), {"logits": logits})
        )
        with pytest.raises(InputError, match="NaN or infinity"):
            classifier.predict(varied(1))


def test_parts_that_do_not_fit_are_refused_at_loading(classifier, monkeypatch):
    import torch

    monkeypatch.setattr(classifier, "_model", lambda **inputs: type("Out", (), {"logits": torch.zeros(1, 3)}))
    with pytest.raises(InputError, match="gives 3 numbers for 5 classes"):
        classifier.try_out()
    monkeypatch.setattr(classifier, "_model", lambda **inputs: [][0])
    with pytest.raises(RefusalCoreError, match="does not run on its tokenizer's tokens"):
        classifier.try_out()
