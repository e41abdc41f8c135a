"""Checkpoint folders that are refused with one sentence, and that nothing of a folder is ever run."""

from __future__ import annotations

import json
import os
import pickle
import random
import resource
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refusal_core.classifier import checkpoint, folder, load
from refusal_core.errors import InputError, RefusalCoreError, WorkError
from refusal_core.exchanges import Exchange
from tests.checkpoints import edit_json

PAIR = Exchange("what is lima", "sorry i cannot help with that")
MB = 1_000_000
pytestmark = pytest.mark.usefixtures("no_network")


def refusal(name: str | os.PathLike) -> str:
    """The one sentence of the InputError that loading `name` raises, quickly and without taking memory."""
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(InputError) as caught:
        load(str(name))
    assert time.process_time() - begun < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB
    sentence = str(caught.value)
    assert "\n" not in sentence and sentence.endswith(".") and len(sentence) < 2_000
    return sentence


class Trap:
    """Unpickling it makes a folder."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


# What is never run or opened


def test_planted_code_and_pickles_are_left_alone(copy, tmp_path):
    marker = tmp_path / "marker"
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt", ".metadata", "model.bin", "vocab.bin"):
        (copy / name).write_bytes(pickle.dumps(Trap(marker)))
    for name in ("evil.py", "modeling_bert.py", "tokenization_bert.py", "sitecustomize.py"):
        (copy / name).write_text(f"import os\nos.mkdir({str(marker)!r})\n")
    (copy / "chat_template.jinja").write_text("{{ 1 / 0 }}")
    (copy / "generation_config.json").write_text("not json")
    auto_map = {f"Auto{kind}": "evil.Evil" for kind in ("Config", "Model", "ModelForSequenceClassification")}
    edit_json(copy / "config.json", auto_map=auto_map)
    edit_json(copy / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Evil", "evil.Evil"]})
    assert load(str(copy)).predict([PAIR])[0].label
    edit_json(copy / "config.json", model_type="evil")
    assert "its model type is evil" in refusal(copy) and "not run" in refusal(copy)
    (copy / "model.safetensors").unlink()
    edit_json(copy / "config.json", model_type="bert")
    assert "safetensors only" in refusal(copy)
    assert not marker.exists()


HARMLESS_CONFIG = {
    "attn_implementation": "someone/kernel",
    "_attn_implementation_internal": "someone/kernel",
    "experts_implementation": "someone/kernel",
    "transformers_weights": "../outside.safetensors",
    "configuration_files": ["config.0.0.json"],
    "return_dict": False,
    "output_hidden_states": True,
    "torchscript": True,
    "chunk_size_feed_forward": 7,
    "fusion_config": {"a": "b"},
    "_name_or_path": "/etc",
}
HARMLESS_TOKENIZER = {
    "vocab_file": "/etc/passwd",
    "tokenizer_file": "/etc/passwd",
    "gguf_file": "/etc/passwd",
    "fast_tokenizer_files": ["tokenizer.0/../../outside.json"],
    "init_inputs": ["/etc/passwd"],
    "cache_dir": "/etc",
    "chat_template": "{{ 1 / 0 }}",
    "name_or_path": "/etc",
    "tokenizer_object": {"a": 1},
}


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [("config.json", *item) for item in HARMLESS_CONFIG.items()]
    + [("tokenizer_config.json", *item) for item in HARMLESS_TOKENIZER.items()],
)
def test_settings_that_name_code_or_files_change_nothing(copy, tiny_checkpoint, file, key, value):
    edit_json(copy / file, **{key: value})
    assert load(str(copy)).predict([PAIR]) == load(str(tiny_checkpoint)).predict([PAIR])


# What is refused


def unlink(*names):
    return lambda at: [(at / name).unlink() for name in names]


def config(**changes):
    return lambda at: edit_json(at / "config.json", **changes)


def tokenizer_config(**changes):
    return lambda at: edit_json(at / "tokenizer_config.json", **changes)


def write(name: str, content: str | bytes):
    return lambda at: (at / name).write_bytes(content.encode() if isinstance(content, str) else content)


def cut(name: str, size: int):
    return lambda at: os.truncate(at / name, size)


def index(**weight_map):
    def change(at: Path) -> None:
        (at / "model.safetensors").rename(at.parent / "outside.safetensors")
        (at / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))

    return change


def weights(change):
    """Change the tensors in the file."""

    def apply(at: Path) -> None:
        from safetensors.torch import load_file, save_file

        tensors = load_file(at / "model.safetensors")
        change(tensors)
        save_file(tensors, at / "model.safetensors", metadata={"format": "pt"})

    return apply


def first(tensors, value=None):
    """Fill the first tensor, or remove it."""
    key = sorted(tensors)[0]
    tensors.pop(key) if value is None else tensors[key].view(-1)[:1].fill_(value)


def adapter(base):
    return write("adapter_config.json", json.dumps({"base_model_name_or_path": base, "peft_type": "LORA"}))


def pickle_only(at: Path) -> None:
    (at / "model.safetensors").rename(at / "pytorch_model.bin")


def bigger_vocabulary(at: Path) -> None:
    content = json.loads((at / "tokenizer.json").read_text())
    content["model"]["vocab"] |= {"far": 10**6}
    (at / "tokenizer.json").write_text(json.dumps(content))


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 123\n"
REFUSED = {
    "no config": (unlink("config.json"), "no config.json"),
    "config not json": (write("config.json", "{'a"), "not valid JSON"),
    "config deep": (write("config.json", "[" * 100_000), "not valid JSON"),
    "config binary": (write("config.json", b"\xff\xfe\x00"), "not valid JSON"),
    "config a list": (write("config.json", "[]"), "not a JSON object"),
    "config a pointer": (write("config.json", LFS), "Git LFS pointer"),
    "weights a pointer": (write("model.safetensors", LFS), "Git LFS pointer"),
    "tokenizer a pointer": (write("tokenizer.json", LFS), "Git LFS pointer"),
    "no weights": (unlink("model.safetensors"), "no weights"),
    "pickle only": (pickle_only, "holds pytorch_model.bin but no model.safetensors"),
    "cut weights": (cut("model.safetensors", 5_000), "cannot be loaded"),
    "cut header": (cut("model.safetensors", 20), "cannot be loaded"),
    "empty weights": (cut("model.safetensors", 0), "cannot be loaded"),
    "huge header": (write("model.safetensors", b"\xff" * 8 + b"{}"), "cannot be loaded"),
    "index outside": (index(a="../outside.safetensors"), "missing: ../outside.safetensors"),
    "index absolute": (index(a="/etc/passwd"), "missing: /etc/passwd"),
    "index of a pickle": (index(a="pytorch_model.bin"), "missing: pytorch_model.bin"),
    "index of numbers": (index(a=1), "missing: 1"),
    "index empty": (index(), "names no weights files"),
    "NaN": (weights(lambda tensors: first(tensors, float("nan"))), "NaN or infinity"),
    "infinity": (weights(lambda tensors: first(tensors, float("inf"))), "NaN or infinity"),
    "a tensor missing": (weights(first), "its weights lack bert."),
    "no head": (weights(lambda t: [t.pop(k) for k in list(t) if "classifier" in k]), "classifier.bias and 1 more"),
    "no tensors": (weights(dict.clear), "larger model than the weights|its weights lack"),
    "other shapes": (config(intermediate_size=63), "cannot be loaded"),
    "adapter": (lambda at: (adapter("owner/base")(at), unlink("config.json")(at)), "PEFT adapter for owner/base"),
    "adapter beside": (adapter("owner/base"), "PEFT adapter for owner/base"),
    "adapter of nothing": (adapter(None), "PEFT adapter for a base model"),
    "base model": (config(architectures=["BertModel"]), "is a BertModel; a sequence classifier"),
    "masked": (config(architectures=["BertForMaskedLM"]), "is a BertForMaskedLM"),
    "no model type": (config(model_type=None), "names no model type"),
    "model type a list": (config(model_type=["bert"]), "its model type is"),
    "another model type": (config(model_type="gpt2"), "cannot be loaded|lack"),
    "not a classifier": (config(model_type="vit"), "sequence classifier"),
    "multi-label": (config(problem_type="multi_label_classification"), "multi_label_classification"),
    "regression": (config(problem_type="regression"), "problem type is regression"),
    "quantized": (config(quantization_config={"quant_method": "bitsandbytes"}), "quantized"),
    "single output": (config(id2label={"0": "a"}, label2id={"a": 0}), "a single output"),
    "same names": (config(id2label={str(i): "a" for i in range(5)}), "two of its outputs have the same name"),
    "other number of labels": (config(id2label={str(i): str(i) for i in range(4)}), "cannot be loaded"),
    "labels a list": (config(id2label=["a", "b"]), "cannot be loaded"),
    "labels not numbered": (config(id2label={"x": "a", "y": "b"}), "cannot be loaded"),
    "vocabulary 10**10": (config(vocab_size=10**10), "vocab_size is 10,000,000,000"),
    "layers 10**9": (config(num_hidden_layers=10**9), "num_hidden_layers is 1,000,000,000"),
    "hidden 10**7": (config(hidden_size=10**7), "hidden_size is 10,000,000"),
    "labels 10**9": (config(id2label=None, label2id=None, num_labels=10**9), "it has 1,000,000,000 outputs"),
    "labels 10**6": (config(id2label=None, label2id=None, num_labels=10**6), "1,000,000 outputs"),
    "vocabulary within the limit": (config(vocab_size=2_000_000), "describes a larger model"),
    "layers within the limit": (config(num_hidden_layers=1_000_000), "describes a larger model"),
    "thin layers": (config(num_hidden_layers=10**6, hidden_size=2, intermediate_size=1), "describes a larger model"),
    "hidden within the limit": (config(hidden_size=1_000_000), "describes a larger model"),
    "positions within the limit": (config(max_position_embeddings=2_000_000), "describes a larger model"),
    "layers of text": (config(num_hidden_layers="2"), "cannot be loaded"),
    "layers a fraction": (config(num_hidden_layers=1e300), "cannot be loaded"),
    "negative": (config(hidden_size=-32), "cannot be loaded"),
    "unknown activation": (config(hidden_act="os.system"), "cannot be loaded"),
    "no tokenizer": (unlink("tokenizer.json"), "there is no tokenizer"),
    "tokenizer not json": (write("tokenizer.json", "{"), "cannot be loaded"),
    "tokenizer empty": (write("tokenizer.json", "{}"), "cannot be loaded"),
    "tokenizer config not json": (write("tokenizer_config.json", "["), "not valid JSON"),
    "vocabulary too large": (bigger_vocabulary, "more entries than its embedding table"),
    "new padding token": (tokenizer_config(pad_token="<new>"), "more entries than its embedding table"),
    "no padding token": (tokenizer_config(pad_token=None), "no padding token"),
    "length of text": (tokenizer_config(model_max_length="long"), "longest input that it allows"),
    "length nil": (tokenizer_config(model_max_length=0), "longest input that it allows"),
    "length NaN": (tokenizer_config(model_max_length=float("nan")), "longest input that it allows"),
    "side": (tokenizer_config(padding_side="up"), "cannot be loaded"),
    "temperature zero": (config(temperature=0), "its temperature is 0; a number from 0.01 to 100"),
    "temperature of text": (config(temperature="1"), "its temperature is '1'"),
    "temperature yes": (config(temperature=True), "its temperature is True"),
    "temperature huge": (config(temperature=1e300), "its temperature is"),
    "token a number": (tokenizer_config(cls_token=3), "cannot be loaded"),
    "class a number": (tokenizer_config(tokenizer_class=3), "cannot be loaded"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_broken_folder_is_refused_in_one_sentence(copy, case):
    change, words = REFUSED[case]
    change(copy)
    sentence = refusal(copy)
    assert any(part in sentence for part in words.split("|")), sentence
    assert sentence.startswith("broken")


def test_files_over_the_limits_are_refused_unread(copy, monkeypatch):
    os.truncate(copy / "tokenizer.json", 60 * MB)  # sparse
    assert "tokenizer.json: the file is 60 MB" in refusal(copy)
    (copy / "tokenizer.json").unlink()
    (copy / "vocab.txt").write_text("a")
    os.truncate(copy / "model.safetensors", 9_000 * MB)
    assert "the weights file is 9 GB" in refusal(copy)


def test_pipes_and_folders_in_place_of_files_are_no_files(copy):
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (copy / name).rename(copy / "kept")
        os.mkfifo(copy / name)
        assert "no " in refusal(copy)
        (copy / name).unlink()
        (copy / name).mkdir()
        assert "no " in refusal(copy)
        (copy / name).rmdir()
        (copy / "kept").rename(copy / name)


@pytest.mark.parametrize(
    "name", ["", " ", "a\0b", "no/such/folder", "./no", "/no", "x" * 300, "\ud800/a", "a b/c", "no-owner"]
)
def test_a_name_that_cannot_be_one(name):
    sentence = refusal(name)
    assert "starter" in sentence and "owner/name" in sentence or "File name too long" in sentence


def test_a_file_is_no_checkpoint_folder(tiny_checkpoint):
    assert "this is a file" in refusal(tiny_checkpoint / "config.json")


def test_a_folder_that_may_not_be_read(copy, monkeypatch):
    def deny(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folder, "_weights", deny)
    assert "it cannot be read (Permission denied)" in refusal(copy)


def test_starter_missing_from_the_installation(monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "STARTER_FOLDER", tmp_path / "none")
    with pytest.raises(WorkError, match="starter checkpoint is missing"):
        load("starter")


def test_too_little_memory_is_not_a_fault_of_the_folder(copy, monkeypatch):
    def fail(*args):
        raise MemoryError

    monkeypatch.setattr(checkpoint, "_check_size", fail)
    with pytest.raises(WorkError, match="Not enough memory"):
        load(str(copy))


# Anything else that files may hold: an answer or one sentence

VALUES = st.sampled_from(
    [None, True, 0, 1, -1, 5, 3.7, 1e9, 10**6, 10**30, "", "x", "../x", "a\nb", "\ud800", [], {}, [1], ["a"], {"a": 1}]
)  # fmt: skip


def _put(node, value, chance: random.Random):
    """`node` with one random place replaced by `value`."""
    if isinstance(node, dict) and node and chance.random() < 0.85:
        key = chance.choice(list(node))
        return node | {key: _put(node[key], value, chance)}
    if isinstance(node, list) and node and chance.random() < 0.7:
        at = chance.randrange(len(node))
        return [*node[:at], _put(node[at], value, chance), *node[at + 1 :]]
    return value


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "tokenizer.json"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, seed=st.integers(0, 10**6))
def test_one_odd_value_anywhere_gives_an_answer_or_a_sentence(tiny_checkpoint, tmp_path, file, value, seed):
    at = Path(shutil.copytree(tiny_checkpoint, tmp_path / "odd", dirs_exist_ok=True))
    content = json.loads((at / file).read_text())
    (at / file).write_text(json.dumps(_put(content, value, random.Random(seed))))
    try:
        answers = load(str(at)).predict([PAIR, Exchange("", "é 🙂 " * 200)])
        assert all(answer.label for answer in answers)
    except RefusalCoreError as error:
        assert "\n" not in str(error)
