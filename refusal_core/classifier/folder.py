"""What a checkpoint folder holds, checked before anything of it is loaded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refusal_core import limits
from refusal_core.errors import InputError

CONFIG, ADAPTER = "config.json", "adapter_config.json"
_WEIGHTS, _WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
_VOCABULARIES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
_TOKENIZER = (*_VOCABULARIES, "merges.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")

# File name patterns of all that is ever read of a checkpoint, at the top of its folder. No pickle, no code.
WANTED = (CONFIG, ADAPTER, _WEIGHTS, _WEIGHTS_INDEX, "model-*.safetensors", *_TOKENIZER)

TEMPERATURE = "temperature"  # the key of config.json
_TEMPERATURES = (0.01, 100.0)
_CLASSES_AT_MOST = 1_000
_LARGEST_NUMBER = 2_000_000  # of a size in config.json; frequencies ("rope_theta") may be larger
_LFS_POINTER = b"version https://git-lfs."
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


@dataclass(frozen=True)
class CheckpointFolder:
    """A folder that holds a whole sequence classifier as far as its files tell. `name` is for messages."""

    name: str
    config: dict[str, Any]
    weights: tuple[Path, ...]
    tokenizer: tuple[Path, ...]
    config_file: Path

    def temperature(self) -> float:
        """What the outputs are divided by before the softmax, as config.json says; 1.0 without a word of it."""
        found = self.config.get(TEMPERATURE)
        if found is None:
            return 1.0
        least, most = _TEMPERATURES
        if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found <= most:
            raise InputError(
                f"its temperature is {found!r}",
                where=f"{self.name}/{CONFIG}",
                why=f"a number from {least:g} to {most:g} was expected",
                fix="mend it, or take it out",
            )
        return float(found)

    def digest(self) -> str:
        """SHA-256 over names and contents of the files that decide an answer."""
        total = hashlib.sha256()
        for path in sorted((self.config_file, *self.weights, *self.tokenizer)):
            with path.open("rb") as file:
                total.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
        return total.hexdigest()


def read_folder(path: Path, name: str) -> CheckpointFolder:
    """The checked contents of the folder `path`; raises InputError for what is not a whole sequence classifier."""
    if (path / ADAPTER).is_file():
        base = read_json(path / ADAPTER, name).get("base_model_name_or_path") or "a base model"
        raise InputError(
            f"it holds a PEFT adapter for {base}",
            where=name,
            why="a whole checkpoint was expected",
            fix="merge it into its base (peft: merge_and_unload), save that with save_pretrained and name that folder",
        )
    if not (path / CONFIG).is_file():
        raise InputError(
            "there is no config.json", where=name, why="a checkpoint folder as save_pretrained writes it was expected"
        )
    config = read_json(path / CONFIG, name)
    _check_config(config, name)
    weights = _weights(path, name)
    size = sum(file.stat().st_size for file in weights)
    limits.check_size(
        size, limits.CHECKPOINT_BYTES, what="the weights file", where=name, fix="name a smaller checkpoint"
    )
    tokenizer = tuple(path / file for file in _TOKENIZER if (path / file).is_file())
    if not any(file.name in _VOCABULARIES for file in tokenizer):
        raise InputError(
            "there is no tokenizer", where=name, fix="save the tokenizer into the same folder with save_pretrained"
        )
    for file in (*weights, *tokenizer):
        _refuse_pointer(file, name)
    for file in tokenizer:
        _check_file_size(file, name)
    return CheckpointFolder(name, config, weights, tokenizer, path / CONFIG)


def read_json(path: Path, name: str) -> dict[str, Any]:
    """The JSON object in the file `path` of the checkpoint `name`."""
    _check_file_size(path, name)
    _refuse_pointer(path, name)
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise InputError("it is not valid JSON", where=f"{name}/{path.name}", fix="copy the checkpoint again") from None
    if not isinstance(content, dict):
        raise InputError("it is not a JSON object", where=f"{name}/{path.name}", fix="copy the checkpoint again")
    return content


def _weights(path: Path, name: str) -> tuple[Path, ...]:
    """The safetensors files that hold the weights, one or the shards that the index names."""
    if (path / _WEIGHTS).is_file():
        return (path / _WEIGHTS,)
    if not (path / _WEIGHTS_INDEX).is_file():
        pickled = sorted(
            file.name
            for file in path.iterdir()
            if file.name.startswith(("pytorch_model", "model")) and file.suffix in _PICKLES
        )
        raise InputError(
            f"it holds {pickled[0]} but no {_WEIGHTS}" if pickled else f"it holds no weights ({_WEIGHTS})",
            where=name,
            why="weights are read from safetensors only, since other formats can run code",
            fix="save it again with save_pretrained" if pickled else "copy the checkpoint again",
        )
    index = read_json(path / _WEIGHTS_INDEX, name).get("weight_map")
    shards = sorted({str(shard) for shard in index.values()}) if isinstance(index, dict) else []
    for shard in shards:
        if Path(shard).name != shard or not shard.endswith(".safetensors") or not (path / shard).is_file():
            raise InputError(
                f"a weights file named there is missing: {shard}",
                where=f"{name}/{_WEIGHTS_INDEX}",
                fix="copy the checkpoint again",
            )
    if not shards:
        raise InputError("it names no weights files", where=f"{name}/{_WEIGHTS_INDEX}", fix="copy the checkpoint again")
    return tuple(path / shard for shard in shards)


def _check_config(config: dict[str, Any], name: str) -> None:
    architectures = config.get("architectures")
    if (
        isinstance(architectures, list)
        and architectures
        and not any("SequenceClassification" in str(a) for a in architectures)
    ):
        raise InputError(
            f"this checkpoint is a {architectures[0]}",
            where=name,
            why="a sequence classifier (…ForSequenceClassification) was expected",
            fix="train one from it with `python -m refusal_core.cli train`, or name another",
        )
    if config.get("problem_type") in ("multi_label_classification", "regression"):
        raise InputError(
            f"its problem type is {config['problem_type']}", where=name, why="one class a response was expected"
        )
    if config.get("quantization_config"):
        raise InputError("its weights are quantized", where=name, why="plain floating-point weights were expected")
    labels = config.get("id2label")
    classes = len(labels) if isinstance(labels, dict) else config.get("num_labels")
    if isinstance(classes, int) and not 2 <= classes <= _CLASSES_AT_MOST:
        found = "a single output" if classes == 1 else f"{classes:,} outputs"
        expected = f"a classifier with 2 to {_CLASSES_AT_MOST:,} classes was expected"
        raise InputError(f"it has {found}", where=name, why=expected)
    for key, number in _numbers(config):
        if abs(number) > _LARGEST_NUMBER and "theta" not in key:
            raise InputError(
                f"{key} is {number:,}", where=f"{name}/{CONFIG}", why=f"at most {_LARGEST_NUMBER:,} is loaded"
            )


def _numbers(value: object, key: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number in a JSON value with the key that it stands under."""
    waiting = [(key, value)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += ((key, item) for item in value)
        elif isinstance(value, int):
            yield key, value


def _check_file_size(path: Path, name: str) -> None:
    limits.check_size(
        path.stat().st_size,
        limits.CHECKPOINT_JSON_BYTES,
        what="the file",
        where=f"{name}/{path.name}",
        fix="check that it is the right file",
    )


def _refuse_pointer(path: Path, name: str) -> None:
    with path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise InputError(
                "it is a Git LFS pointer, not the file itself",
                where=f"{name}/{path.name}",
                fix="run `git lfs pull` there, or copy the checkpoint again",
            )
