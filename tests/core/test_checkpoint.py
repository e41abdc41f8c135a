"""Checkpoint folders that load, and what is told of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from refusal_core.classifier import checkpoint, load
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS
from tests.checkpoints import edit_json, make_checkpoint

PAIR = Exchange("what is lima", "sorry i cannot help with that")
pytestmark = pytest.mark.usefixtures("no_network")


@pytest.mark.parametrize("architecture", ["bert", "modernbert", "roberta"])
def test_loads_three_architectures(tmp_path, architecture):
    classifier = load(str(make_checkpoint(tmp_path / "it", architecture=architecture)))
    info = classifier.info
    assert (info.kind, info.revision, info.labels, info.notes) == ("directory", None, LABELS, ())
    assert info.longest_input == info.max_tokens == 128
    assert "ForSequenceClassification" in info.architecture and info.parameters > 20_000
    assert classifier.predict([PAIR])[0].label in LABELS


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_is_float32_whatever_was_saved(copy, dtype):
    import torch
    from safetensors.torch import load_file, save_file

    saved = {key: tensor.to(getattr(torch, dtype)) for key, tensor in load_file(copy / "model.safetensors").items()}
    save_file(saved, copy / "model.safetensors", metadata={"format": "pt"})
    edit_json(copy / "config.json", dtype=dtype)
    model = checkpoint.load_checkpoint(str(copy)).model
    assert {p.dtype for p in model.parameters()} == {torch.float32} and not model.training


@pytest.mark.skipif(not checkpoint.STARTER_FOLDER.is_dir(), reason="the starter checkpoint is not built here")
def test_the_starter_loads():
    classifier = load("starter")
    assert (classifier.info.kind, classifier.info.name, classifier.info.labels) == ("starter", "starter", LABELS)
    assert classifier.info.notes == () and classifier.predict([PAIR])[0].label in LABELS


def test_sharded_weights_give_the_same_answer(tiny_checkpoint, tmp_path):
    sharded = make_checkpoint(tmp_path / "sharded", max_shard_size="20KB")
    assert len(list(sharded.glob("model-*.safetensors"))) > 1
    one, many = load(str(tiny_checkpoint)), load(str(sharded))
    assert one.predict([PAIR])[0].probabilities == many.predict([PAIR])[0].probabilities


def test_digest_is_of_the_files_that_decide_an_answer(copy):
    digest = load(str(copy)).info.digest
    (copy / "trainer_state.json").write_text("{}")
    (copy / "README.md").write_text("a card")
    assert load(str(copy)).info.digest == digest
    edit_json(copy / "tokenizer_config.json", note="another")
    assert load(str(copy)).info.digest != digest


@pytest.mark.parametrize(
    ("labels", "shown", "note"),
    [
        (None, LABELS, "have no names"),
        (LABELS[::-1], LABELS[::-1], None),
        (("no", "yes"), ("no", "yes"), "no, yes"),
        (("a", "b", "c"), ("a", "b", "c"), "under their own names: a, b, c"),
        (("a\nb", "c"), ("a\nb", "c"), "a b, c"),
    ],
)
def test_labels_are_those_of_the_checkpoint(tmp_path, labels, shown, note):
    classifier = load(str(make_checkpoint(tmp_path / "it", labels=labels)))
    assert classifier.info.labels == shown
    assert tuple(classifier.predict([PAIR])[0].probabilities) == shown
    assert [note in text and "\n" not in text for text in classifier.info.notes] == ([] if note is None else [True])


def test_a_file_that_is_rewritten_later_changes_nothing(copy):
    classifier = load(str(copy))
    before = classifier.predict([PAIR])
    with (copy / "model.safetensors").open("wb") as file:  # a mapped file would end this process
        file.truncate(10)
    assert classifier.predict([PAIR]) == before


def test_threads_may_load_at_once(tiny_checkpoint):
    from transformers.utils import logging

    verbosity, expected = logging.get_verbosity(), load(str(tiny_checkpoint)).predict([PAIR])
    with ThreadPoolExecutor(6) as pool:
        for classifier in pool.map(load, [str(tiny_checkpoint)] * 12):
            assert classifier.predict([PAIR]) == expected
    assert logging.get_verbosity() == verbosity


def test_segment_ids_are_given_only_to_models_that_take_them(tmp_path):
    roberta = make_checkpoint(tmp_path / "it", architecture="roberta")
    edit_json(roberta / "tokenizer_config.json", model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    assert load(str(roberta)).predict([PAIR])[0].label


def test_a_decoder_without_its_padding_token_reads_batches(copy):
    from transformers import GPT2Config, GPT2ForSequenceClassification

    config = GPT2Config(vocab_size=98, n_positions=64, n_embd=32, n_layer=2, n_head=2, num_labels=5)
    GPT2ForSequenceClassification(config).save_pretrained(copy)
    classifier = load(str(copy))
    assert classifier.info.labels == LABELS and classifier.info.longest_input == 64
    exchanges = [PAIR, Exchange("a", "help " * 100), Exchange("b", "c")]
    for exchange, answer in zip(exchanges, classifier.predict(exchanges), strict=True):
        assert answer.probabilities == pytest.approx(classifier.predict([exchange])[0].probabilities, abs=1e-5)


def test_longest_input_heeds_offset_positions(tmp_path):
    roberta = make_checkpoint(tmp_path / "it", architecture="roberta", positions=40)
    edit_json(roberta / "tokenizer_config.json", model_max_length=10**30)
    classifier = load(str(roberta))
    assert classifier.info.longest_input == 40
    assert classifier.predict([Exchange("a", "help " * 100)])[0].tokens.input == 40


def test_a_name_with_our_folder_goes_before_the_hub(copy, monkeypatch):
    monkeypatch.chdir(copy.parent.parent)
    name = f"{copy.parent.name}/{copy.name}"
    assert load(name).info.kind == "directory"
    monkeypatch.chdir(copy)
    assert load(".").info.kind == "directory"
