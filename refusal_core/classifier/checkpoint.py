"""Resolve a checkpoint's name and load it safely: safetensors only, no code from the checkpoint, float32."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refusal_core import limits
from refusal_core.classifier import hub
from refusal_core.classifier.result import CheckpointInfo
from refusal_core.errors import InputError
from refusal_core.labels import LABELS

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

STARTER = "starter"
STARTER_FOLDER = Path(__file__).parent / "starter"

_LAYERS_AT_MOST = 1_000
# RoBERTa's family counts positions from its padding index on.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "data2vec-text", "xmod", "ibert"}


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A checkpoint in memory."""

    info: CheckpointInfo
    model: torch.nn.Module
    tokenizer: PreTrainedTokenizerBase


def load_checkpoint(name: str) -> LoadedCheckpoint:
    """Load `starter`, a local checkpoint folder, or a hub id with an optional `@revision`.

    Raises InputError for what is not a loadable sequence classifier, WorkError when the hub is not reached.
    """
    folder, kind, revision, notes = _resolve(name)
    config_json = _check_folder(folder)
    return _load(folder, config_json, name=name, kind=kind, revision=revision, notes=notes)


def _resolve(name: str) -> tuple[Path, str, str | None, list[str]]:
    if name == STARTER:
        return STARTER_FOLDER, "starter", None, []
    if "\0" in name or not name.strip():
        raise InputError("the checkpoint has no usable name", fix="name `starter`, a folder, or a hub id such as owner/name")
    folder = Path(name)
    if folder.is_dir():
        return folder, "directory", None, []
    hub_name = hub.parse_name(name)
    if folder.exists() or hub_name is None:
        what = "this is a file, not a checkpoint folder" if folder.exists() else "there is no such folder"
        raise InputError(what, where=name, fix="name `starter`, a checkpoint folder, or a hub id such as owner/name@revision")
    found = hub.fetch(*hub_name)
    notes = ["The hub was not reached; this is the copy in the local cache."] if found.from_cache else []
    return found.path, "hub", found.revision, notes


def _check_folder(folder: Path) -> dict[str, Any]:
    """The parsed config.json of a folder that can be loaded; raises InputError for every other folder."""
    where = folder.name or str(folder)
    names = {path.name for path in folder.iterdir()}
    if "adapter_config.json" in names and "config.json" not in names:
        base = _read_json(folder / "adapter_config.json").get("base_model_name_or_path") or "its base model"
        raise InputError(
            f"this is a PEFT adapter for {base}, not a whole checkpoint",
            where=where,
            fix="merge it into its base (peft: merge_and_unload), save that with save_pretrained and name that folder",
        )
    if "config.json" not in names:
        raise InputError("there is no config.json", where=where, why="a checkpoint folder as save_pretrained writes it was expected")
    weights = sorted(name for name in names if name.endswith(".safetensors"))
    if not weights:
        pickled = sorted(name for name in names if name.endswith((".bin", ".pt", ".pth", ".ckpt")))
        found = f"only {pickled[0]}" if pickled else "no weights"
        raise InputError(
            f"it holds {found}",
            where=where,
            why="weights are read from safetensors only, since other formats can run code",
            fix="save it again with save_pretrained(..., safe_serialization=True)",
        )
    for index in (name for name in names if name.endswith(".safetensors.index.json")):
        shards = _read_json(folder / index).get("weight_map", {})
        outside = [shard for shard in shards.values() if shard not in weights] if isinstance(shards, dict) else ["?"]
        if outside:
            raise InputError(f"a weight file named there is missing: {outside[0]}", where=f"{where}/{index}")
    if not names & {"tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"}:
        raise InputError("there is no tokenizer", where=where, fix="save the tokenizer into the same folder with save_pretrained")
    size = sum((folder / name).stat().st_size for name in weights)
    limits.check_size(size, limits.CHECKPOINT_BYTES, what="the weights file", where=where, fix="name a smaller checkpoint")
    return _check_config(_read_json(folder / "config.json"), where)


def _check_config(config: dict[str, Any], where: str) -> dict[str, Any]:
    architectures = config.get("architectures") or []
    if architectures and not any("SequenceClassification" in str(name) for name in architectures):
        raise InputError(
            f"this checkpoint is a {architectures[0]}",
            where=where,
            why="a sequence classifier (…ForSequenceClassification) was expected",
            fix="train one with `python -m refusal_core.training.recipe`, or name another",
        )
    if config.get("problem_type") in ("multi_label_classification", "regression"):
        raise InputError(f"its problem type is {config['problem_type']}", where=where, why="one class a response was expected")
    layers = config.get("num_hidden_layers", 0)
    if isinstance(layers, int) and layers > _LAYERS_AT_MOST:
        raise InputError(f"num_hidden_layers is {layers}", where=f"{where}/config.json", why=f"at most {_LAYERS_AT_MOST} are loaded")
    return config


def _read_json(path: Path) -> dict[str, Any]:
    where = f"{path.parent.name}/{path.name}"
    limits.check_size(path.stat().st_size, limits.CHECKPOINT_JSON_BYTES, what="the file", where=where, fix="check that it is the right file")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        hint = "it is a Git LFS pointer" if path.read_bytes()[:24] == b"version https://git-lfs." else "it is not valid JSON"
        raise InputError(hint, where=where, fix="copy the checkpoint again") from None
    if not isinstance(content, dict):
        raise InputError("it is not a JSON object", where=where, fix="copy the checkpoint again")
    return content


def _load(folder: Path, config_json: dict, *, name: str, kind: str, revision: str | None, notes: list[str]) -> LoadedCheckpoint:
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    trusted_with_nothing = {"local_files_only": True, "trust_remote_code": False}
    where = folder.name
    try:
        config = AutoConfig.from_pretrained(folder, **trusted_with_nothing)
        labels, label_notes = _labels(config, where)
        _check_weights(folder, config, where)
        tokenizer = AutoTokenizer.from_pretrained(folder, **trusted_with_nothing)
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True, **trusted_with_nothing
        )
    except InputError:
        raise
    except Exception as problem:  # transformers and safetensors raise many kinds for a broken folder
        raise InputError(f"it cannot be loaded ({type(problem).__name__}: {problem})", where=where, fix="copy or save the checkpoint again") from problem
    _check_loaded(model, tokenizer, report, where)
    torch.set_num_threads(_cores())
    model.eval()
    longest_input = _position_limit(config, tokenizer)
    info = CheckpointInfo(
        name=name,
        kind=kind,
        revision=revision,
        digest=_digest(folder),
        labels=labels,
        max_tokens=min(longest_input, limits.MAX_TOKENS),
        longest_input=longest_input,
        architecture=(config.architectures or [type(model).__name__])[0],
        parameters=sum(p.numel() for p in model.parameters()),
        notes=(*notes, *label_notes),
    )
    return LoadedCheckpoint(info, model, tokenizer)


def _labels(config: Any, where: str) -> tuple[tuple[str, ...], list[str]]:
    """The names of the outputs in order, and what a reader must know about them."""
    names = tuple(str(config.id2label.get(i, f"LABEL_{i}")) for i in range(config.num_labels))
    if len(names) < 2:
        raise InputError("it has a single output", where=where, why="a classifier with at least two classes was expected")
    if len(set(names)) < len(names):
        raise InputError("two of its outputs have the same name", where=f"{where}/config.json", fix="mend id2label")
    if names == tuple(f"LABEL_{i}" for i in range(len(LABELS))):
        return LABELS, ["Its outputs have no names (LABEL_0 to LABEL_4); they are read in this project's order of the five classes."]
    if set(names) != set(LABELS):
        return names, [f"Its classes are not this project's five; they are shown under their own names: {', '.join(names)}."]
    return names, []


def _check_weights(folder: Path, config: Any, where: str) -> None:
    """Compare the size that the configuration describes with the weights that are there, before anything is allocated."""
    import torch
    from safetensors import safe_open
    from transformers import AutoModelForSequenceClassification

    stored = 0
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for key in file.keys():
                size = 1
                for length in file.get_slice(key).get_shape():
                    size *= length
                stored += size
    with torch.device("meta"):
        described = sum(p.numel() for p in AutoModelForSequenceClassification.from_config(config).parameters())
    if described > 2 * stored + 10_000:
        raise InputError(
            f"config.json describes {described:,} parameters, the weights hold {stored:,}", where=where, fix="copy the checkpoint again"
        )


def _check_loaded(model: Any, tokenizer: Any, report: dict, where: str) -> None:
    import torch

    missing = sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"])
    if missing:
        raise InputError(
            f"its weights lack {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else ""),
            where=where,
            why="random numbers would stand in their place",
            fix="name the trained classifier, not its base model",
        )
    if not all(torch.isfinite(p).all() for p in model.parameters()):
        raise InputError("its weights hold NaN or infinity", where=where, fix="use an earlier checkpoint of that training")
    if not tokenizer.is_fast:
        raise InputError("its tokenizer has no tokenizer.json form", where=where, fix="save it with a fast tokenizer")
    if tokenizer.pad_token_id is None:
        raise InputError("its tokenizer has no padding token", where=where, fix="set tokenizer.pad_token and save it again")
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise InputError("its tokenizer has more entries than its embedding table", where=where, fix="save model and tokenizer of one training")


def _position_limit(config: Any, tokenizer: Any) -> int:
    """Longest input in tokens, special ones included, that both the model and its tokenizer allow."""
    positions = getattr(config, "max_position_embeddings", None) or limits.MAX_TOKENS
    if config.model_type in _OFFSET_POSITIONS:
        positions -= (config.pad_token_id or 0) + 1
    return int(min(positions, tokenizer.model_max_length))


def _digest(folder: Path) -> str:
    """SHA-256 over names and contents of the files that decide an answer."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".safetensors", ".json", ".txt", ".model") and not path.name.startswith((".", "README")):
            with path.open("rb") as file:
                total.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
