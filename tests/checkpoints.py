"""Small random checkpoints, made on the spot: real folders as save_pretrained writes them, in a tenth of a second."""

from __future__ import annotations

import json
from pathlib import Path

from refusal_core.labels import LABELS

_WORDS = [
    "i",
    "can",
    "cannot",
    "t",
    "help",
    "sorry",
    "with",
    "that",
    "what",
    "is",
    "the",
    "a",
    "of",
    "to",
    "you",
    "do",
    "'",
    ".",
    ",",
    "?",
    "!",
    "which",
    "version",
    "lima",
    "refuse",
]


def make_checkpoint(
    folder: Path,
    *,
    architecture: str = "bert",
    labels: tuple[str, ...] | None = LABELS,
    positions: int = 128,
    seed: int = 0,
    **save_options,
) -> Path:
    """A random two-layer classifier in `folder`. `labels` None leaves the outputs unnamed (LABEL_0, ...).

    architecture: "bert" (segment ids), "modernbert" (as the public checkpoint) or "roberta" (offset positions).
    """
    import torch
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        ModernBertConfig,
        ModernBertForSequenceClassification,
        RobertaConfig,
        RobertaForSequenceClassification,
    )

    torch.manual_seed(seed)
    tokenizer = _tokenizer(architecture, positions)
    size = {
        "vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 64, "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    names = labels or tuple(f"LABEL_{i}" for i in range(5))
    size |= {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
    if architecture == "bert":
        model = BertForSequenceClassification(BertConfig(max_position_embeddings=positions, **size))
    elif architecture == "roberta":
        model = RobertaForSequenceClassification(
            RobertaConfig(max_position_embeddings=positions + 1 + tokenizer.pad_token_id, **size)
        )
    else:
        special = {
            "cls_token_id": tokenizer.cls_token_id,
            "sep_token_id": tokenizer.sep_token_id,
            "bos_token_id": None,
            "eos_token_id": None,
        }
        model = ModernBertForSequenceClassification(
            ModernBertConfig(max_position_embeddings=positions, **special, **size)
        )
    with torch.no_grad():  # a random head of the usual size answers nearly the same to everything
        model.classifier.weight.mul_(30) if architecture != "roberta" else model.classifier.out_proj.weight.mul_(30)
    model.save_pretrained(folder, **save_options)
    tokenizer.save_pretrained(folder)
    return folder


def lively(folder: Path) -> Path:
    """Enlarge the weights: the answers of a model as it is initialised hardly depend on the text."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    for key, tensor in tensors.items():
        tensor.mul_(8 if tensor.dim() == 2 and "classifier" not in key else 1)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def edit_json(path: Path, **changes) -> None:
    """Set (or with None remove) keys of a JSON file."""
    content = json.loads(path.read_text())
    for key, value in changes.items():
        content.pop(key, None) if value is None else content.update({key: value})
    path.write_text(json.dumps(content))


def _tokenizer(architecture: str, positions: int):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pad, unknown, cls, sep = (
        ("<pad>", "<unk>", "<s>", "</s>") if architecture == "roberta" else ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    )
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + [str(d) for d in range(10)]
    entries = [pad, unknown, cls, sep, *dict.fromkeys(_WORDS + letters), *(f"##{letter}" for letter in letters)]
    tokenizer = Tokenizer(models.WordPiece({entry: i for i, entry in enumerate(entries)}, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    one, two = f"{cls} $A {sep}", f"{cls} $A {sep} $B:1 {sep}:1"
    if architecture == "roberta":
        two = f"{cls} $A {sep} {sep} $B {sep}"
    if architecture == "modernbert":
        two = f"{cls} $A {sep} $B {sep}"
    ids = [(cls, entries.index(cls)), (sep, entries.index(sep))]
    tokenizer.post_processor = processors.TemplateProcessing(single=one, pair=two, special_tokens=ids)
    inputs = (
        ["input_ids", "token_type_ids", "attention_mask"] if architecture == "bert" else ["input_ids", "attention_mask"]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=pad, unk_token=unknown, cls_token=cls, sep_token=sep,
        model_max_length=positions, model_input_names=inputs,
    )  # fmt: skip
