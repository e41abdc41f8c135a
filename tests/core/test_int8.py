"""The int8 classifier: close to float32, honest about what it is, and nothing of it stays behind."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile

import numpy as np
import pytest
from scipy.special import softmax

from refusal_core import cli
from refusal_core.classifier import int8, load
from refusal_core.errors import InputError, MissingPackage
from refusal_core.exchanges import Exchange
from refusal_core.training.calibrate import write_temperature
from tests.checkpoints import lively, make_checkpoint

EXCHANGES = [
    Exchange("what is that?", "i cannot help with that. " * n + end, id=n)
    for n, end in ((9, ""), (1, "sorry"), (4, "which version?"), (2, "the lima of a"), (15, "!"))
]


@pytest.fixture
def packages():
    for package in int8.PACKAGES:
        pytest.importorskip(package, reason="the optional packages for int8 are not installed")


@pytest.fixture
def small(packages, lively_checkpoint):
    return load(str(lively_checkpoint), int8=True)


def _numbers(answers) -> np.ndarray:
    return np.array([list(answer.probabilities.values()) for answer in answers])


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert"])
def test_answers_are_close_to_float32_and_in_order(packages, tmp_path, architecture):
    name = str(lively(make_checkpoint(tmp_path / "it", architecture=architecture)))
    exact, quick = (load(name, int8=flag).predict(EXCHANGES) for flag in (False, True))
    assert [answer.id for answer in quick] == [9, 1, 4, 2, 15]
    assert [answer.tokens for answer in quick] == [answer.tokens for answer in exact]
    assert np.abs(_numbers(quick) - _numbers(exact)).max() < 0.1
    assert not np.array_equal(_numbers(quick), _numbers(exact))


def test_the_temperature_divides_its_outputs_too(packages, lively_checkpoint, tmp_path):
    warm = shutil.copytree(lively_checkpoint, tmp_path / "warm")
    write_temperature(warm, 2.5)
    plain, cooled = (load(str(folder), int8=True) for folder in (lively_checkpoint, warm))
    assert (plain.info.temperature, cooled.info.temperature) == (1.0, 2.5)
    logits = np.log(_numbers(plain.predict(EXCHANGES)))
    np.testing.assert_allclose(_numbers(cooled.predict(EXCHANGES)), softmax(logits / 2.5, axis=1), atol=1e-6)


def test_padding_hardly_matters(small):
    together = _numbers(small.predict(EXCHANGES))
    alone = _numbers([answer for exchange in EXCHANGES for answer in small.predict([exchange])])
    assert np.abs(together - alone).max() < 0.05


def test_it_says_what_it_is_and_leaves_nothing_behind(packages, lively_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    handlers = list(logging.getLogger().handlers)
    exact, quick = (load(str(lively_checkpoint), int8=flag).info for flag in (False, True))
    assert list(tmp_path.iterdir()) == []
    assert logging.getLogger().handlers == handlers
    assert (exact.precision, quick.precision) == ("float32", "int8")
    assert quick.notes == (*exact.notes, int8.NOTE)
    assert "for speed, not for published numbers" in int8.NOTE
    assert quick.digest == exact.digest


@pytest.mark.parametrize("absent", int8.PACKAGES)
def test_a_missing_package_is_named_before_anything_is_loaded(monkeypatch, absent):
    monkeypatch.setattr(int8.importlib.util, "find_spec", lambda name: None if name == absent else object())
    with pytest.raises(MissingPackage, match=rf'needs the package {absent}: pip install -e "\.\[int8\]"'):
        load("no-such-checkpoint", int8=True)


def test_a_graph_that_is_not_the_model_is_refused(packages, lively_checkpoint, monkeypatch):
    other = load(str(lively_checkpoint))._model
    other.classifier.bias.data.add_(1)
    graph = int8._graph
    monkeypatch.setattr(int8, "_graph", lambda model, names: graph(other, names))
    with pytest.raises(InputError, match="its ONNX graph answers otherwise than the model.*run it without int8"):
        load(str(lively_checkpoint), int8=True)


def test_a_model_too_large_for_one_graph_is_refused(packages, lively_checkpoint, monkeypatch):
    monkeypatch.setattr(int8, "_MOST_BYTES", 1000)
    with pytest.raises(InputError, match="too large for int8; run it without int8"):
        load(str(lively_checkpoint), int8=True)


def test_the_commands_take_it(packages, lively_checkpoint, tmp_path, capsys):
    source = tmp_path / "in.jsonl"
    rows = [{"prompt": e.prompt, "response": e.response, "label": "compliant"} for e in EXCHANGES]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--checkpoint", str(lively_checkpoint), "--int8"]
    assert cli.main(["classify", str(source), "--output", str(tmp_path / "out.jsonl"), *options]) == 0
    assert int8.NOTE in capsys.readouterr().err
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == len(EXCHANGES)
    assert cli.main(["evaluate", str(source), "--output", str(tmp_path / "scores"), *options]) == 0
    assert int8.NOTE in capsys.readouterr().err
    results = json.loads((tmp_path / "scores" / "eval_results.json").read_text())
    assert results["checkpoint"]["precision"] == "int8"
