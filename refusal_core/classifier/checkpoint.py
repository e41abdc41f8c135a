"""Resolve a checkpoint's name and load it safely: safetensors only, no code from the checkpoint, float32."""

from __future__ import annotations

import errno
import inspect
import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from refusal_core import limits
from refusal_core.classifier import hub
from refusal_core.classifier.encode import SHORTEST_INPUT, PairEncoder, is_failure, is_out_of_memory
from refusal_core.classifier.folder import TEMPERATURE, CheckpointFolder, read_folder, read_json
from refusal_core.classifier.result import CheckpointInfo
from refusal_core.errors import InputError, RefusalCoreError, WorkError, one_line
from refusal_core.labels import LABELS

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

STARTER = "starter"
STARTER_FOLDER = Path(__file__).parent / "starter"

_MACHINE_FAULTS = {errno.ENOSPC, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EDQUOT}
_LOADING = threading.Lock()  # transformers sets process-wide switches while it builds a model
# Settings of config.json that name code or other files, or change what the model returns; keys with a leading
# underscore are the library's own.
_CONFIG_IGNORED = {
    "attn_implementation", "auto_map", "chunk_size_feed_forward", "configuration_files", "distributed_config",
    "experts_implementation", "fusion_config", "output_attentions", "output_hidden_states", "return_dict",
    "torchscript", "transformers_weights",
}  # fmt: skip
_TOKENIZER_IGNORED = {"auto_map", "chat_template", "init_inputs"}
_TOKENIZER_IGNORED_ENDINGS = ("_file", "_files", "_dir", "_object")


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A checkpoint in memory. `takes_segments` when its model is given segment ids (token_type_ids)."""

    info: CheckpointInfo
    model: torch.nn.Module
    tokenizer: PreTrainedTokenizerBase
    encoder: PairEncoder
    takes_segments: bool


def load_checkpoint(name: str) -> LoadedCheckpoint:
    """Load `starter`, a local checkpoint folder, or a hub id with an optional `@revision`.

    Raises InputError for what is not a loadable sequence classifier, WorkError when the hub is not reached.
    """
    try:
        path, kind, revision, notes = _resolve(name)
        folder = read_folder(path, path.name or name if kind == "directory" else name)
        with _LOADING, one_sentence(folder.name):
            return _load(folder, name=name, kind=kind, revision=revision, notes=notes)
    except OSError as problem:
        why = problem.strerror or str(problem)
        if problem.errno in _MACHINE_FAULTS:
            raise WorkError(f"{one_line(name)} could not be read: {why}.") from problem
        raise InputError(
            f"it cannot be read ({why})", where=name, fix="check the name and its permissions"
        ) from problem


def _load(
    folder: CheckpointFolder, *, name: str, kind: str, revision: str | None, notes: list[str]
) -> LoadedCheckpoint:
    _set_threads()
    config = _config(folder)
    labels, label_notes = _labels(config, folder.name)
    tokenizer = _load_tokenizer(folder, config)
    encoder = PairEncoder(tokenizer)
    model = _load_model(folder, config)
    _check_vocabulary(tokenizer, model, folder.name)
    if getattr(model.config, "pad_token_id", None) is None:  # a decoder finds its last token by it
        model.config.pad_token_id = tokenizer.pad_token_id
    longest_input = _longest_input(model, tokenizer, folder.name)
    info = CheckpointInfo(
        name=name,
        kind=kind,
        revision=revision,
        digest=folder.digest(),
        labels=labels,
        max_tokens=min(longest_input, limits.MAX_TOKENS),
        longest_input=longest_input,
        architecture=type(model).__name__,
        parameters=sum(p.numel() for p in model.parameters()),
        temperature=folder.temperature(),
        notes=(*notes, *label_notes),
    )
    return LoadedCheckpoint(info, model, tokenizer, encoder, _takes_segments(model, tokenizer))


def _set_threads() -> None:
    """Every core that this process may use, unless OMP_NUM_THREADS says otherwise; the only place that sets it."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ and hasattr(os, "sched_getaffinity"):
        torch.set_num_threads(len(os.sched_getaffinity(0)))


def find_folder(name: str) -> Path:
    """The folder that `name` stands for, downloaded from the hub when it is a hub id; raises as `load_checkpoint`."""
    return _resolve(name)[0]


def _resolve(name: str) -> tuple[Path, str, str | None, list[str]]:
    """Folder, kind, commit and notes of the checkpoint that `name` stands for."""
    names = "name `starter`, a checkpoint folder, or a hub id such as owner/name or owner/name@revision"
    if name == STARTER:
        if not STARTER_FOLDER.is_dir():
            raise WorkError("The starter checkpoint is missing from this installation; install the package again.")
        return STARTER_FOLDER, "starter", None, []
    if not name.strip() or "\0" in name:
        raise InputError("the checkpoint has no usable name", where=name, fix=names)
    folder = Path(name)
    if folder.is_dir():
        return folder, "directory", None, []
    hub_name = hub.parse_name(name)
    if folder.exists() or hub_name is None:
        what = "this is a file" if folder.exists() else "there is no such folder, and it is not a hub id"
        raise InputError(what, where=name, fix=names)
    found = hub.fetch(*hub_name)
    notes = ["The hub was not reached; this is the copy in the local cache."] if found.from_cache else []
    return found.path, "hub", found.revision, notes


def _config(folder: CheckpointFolder) -> PreTrainedConfig:
    from transformers import CONFIG_MAPPING

    model_type = folder.config.get("model_type")
    if not isinstance(model_type, str) or model_type not in CONFIG_MAPPING:
        raise InputError(
            f"its model type is {model_type}" if model_type else "config.json names no model type",
            where=folder.name,
            why="an architecture of the installed transformers was expected, since code from checkpoints is not run",
            fix="name a checkpoint of a built-in architecture",
        )
    ignored = {key for key in folder.config if key in _CONFIG_IGNORED or key.startswith("_")} | {TEMPERATURE}
    return CONFIG_MAPPING[model_type].from_dict({key: folder.config[key] for key in folder.config.keys() - ignored})


def _labels(config: PreTrainedConfig, where: str) -> tuple[tuple[str, ...], list[str]]:
    """The names of the outputs in order, and what a reader must know about them."""
    names = tuple(str(config.id2label.get(i, f"LABEL_{i}")) for i in range(config.num_labels))
    if len(set(names)) < len(names):
        raise InputError("two of its outputs have the same name", where=f"{where}/config.json", fix="mend id2label")
    if names == tuple(f"LABEL_{i}" for i in range(len(LABELS))):
        return LABELS, [
            "Its outputs have no names (LABEL_0 to LABEL_4); they are read in this project's order of classes."
        ]
    if set(names) != set(LABELS):
        shown = one_line(", ".join(names), 300)
        return names, [f"Its classes are not this project's five; they are shown under their own names: {shown}."]
    return names, []


def _load_tokenizer(folder: CheckpointFolder, config: PreTrainedConfig) -> PreTrainedTokenizerBase:
    """The tokenizer from copies of its files alone: the library would also follow names in tokenizer_config.json."""
    from transformers import AutoTokenizer

    with TemporaryDirectory(prefix="tokenizer-") as copies:
        for file in folder.tokenizer:
            if file.name == "tokenizer_config.json":
                wanted = {
                    key: value
                    for key, value in read_json(file, folder.name).items()
                    if key not in _TOKENIZER_IGNORED and not key.endswith(_TOKENIZER_IGNORED_ENDINGS)
                }
                Path(copies, file.name).write_text(json.dumps(wanted))
            else:
                shutil.copyfile(file, Path(copies, file.name))
        tokenizer = AutoTokenizer.from_pretrained(copies, config=config, local_files_only=True, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise InputError(
            "its tokenizer has no tokenizer.json form", where=folder.name, fix="save it as a fast tokenizer"
        )
    if tokenizer.pad_token_id is None:
        fix = "set tokenizer.pad_token and save it again"
        raise InputError("its tokenizer has no padding token", where=folder.name, fix=fix)
    return tokenizer


def _load_model(folder: CheckpointFolder, config: PreTrainedConfig) -> torch.nn.Module:
    """The model in float32. It is given tensors, not the folder, so that the library opens no file by itself."""
    import torch
    from safetensors import safe_open
    from transformers import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

    tensors: dict[str, torch.Tensor] = {}
    for path in folder.weights:
        # Read, not mapped into memory: a training that writes the file anew would end this process.
        with safe_open(path, framework="pt", backend="pread") as file:
            tensors |= {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    model_class = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING.get(type(config), None)
    if model_class is None:
        raise InputError(
            f"{config.model_type} has no sequence classifier in the installed transformers", where=folder.name
        )
    _check_size(model_class, config, sum(tensor.numel() for tensor in tensors.values()), folder.name)
    model, report = model_class.from_pretrained(
        None, config=config, state_dict=tensors, dtype=torch.float32, output_loading_info=True, local_files_only=True
    )
    missing = sorted(map(str, report["missing_keys"]))
    if missing:
        raise InputError(
            f"its weights lack {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else ""),
            where=folder.name,
            why="random numbers would stand in their place",
            fix="name the trained classifier, not its base model",
        )
    if not all(torch.isfinite(p).all() for p in model.parameters()):
        raise InputError(
            "its weights hold NaN or infinity", where=folder.name, fix="use an earlier checkpoint of that training"
        )
    return model.eval()


def _check_size(model_class: type, config: PreTrainedConfig, stored: int, where: str) -> None:
    """Build the model without memory for its numbers, and stop once it is clearly larger than the weights stored."""
    import torch
    from torch.nn.modules import module as hooks

    left, thread = 2 * stored + 1_000_000, threading.get_ident()

    def count(module: object, name: str, tensor: torch.Tensor | None) -> None:
        nonlocal left
        if tensor is None or threading.get_ident() != thread:
            return
        left -= max(tensor.numel(), 1_000)  # a tensor costs time, however small
        if left < 0:
            raise InputError(
                f"config.json describes a larger model than the weights, which hold {stored:,} numbers",
                where=where,
                fix="copy the checkpoint again",
            )

    with ExitStack() as building:
        building.callback(hooks.register_module_parameter_registration_hook(count).remove)
        building.callback(hooks.register_module_buffer_registration_hook(count).remove)
        building.enter_context(torch.device("meta"))
        model_class(config)


def _check_vocabulary(tokenizer: PreTrainedTokenizerBase, model: torch.nn.Module, where: str) -> None:
    if max(tokenizer.get_vocab().values()) >= model.get_input_embeddings().num_embeddings:
        raise InputError(
            "its tokenizer has more entries than its embedding table",
            where=where,
            fix="save model and tokenizer of one training",
        )


def _longest_input(model: torch.nn.Module, tokenizer: PreTrainedTokenizerBase, where: str) -> int:
    """Longest input in tokens, special ones included, that both the model and its tokenizer allow."""
    from torch.nn import Embedding

    positions = getattr(model.config, "max_position_embeddings", None)  # some write -1 for "any"
    allowed = [positions if positions and positions > 0 else limits.MAX_TOKENS, tokenizer.model_max_length]
    for path, table in model.named_modules():
        if isinstance(table, Embedding) and "position" in path.rpartition(".")[2]:
            # RoBERTa's family counts positions from its padding index on, BART's from an offset.
            first = getattr(table, "offset", 0) if table.padding_idx is None else table.padding_idx + 1
            allowed.append(table.num_embeddings - first)
    if not all(isinstance(length, int | float) and length >= SHORTEST_INPUT for length in allowed):
        shown = ", ".join(map(str, allowed))
        raise InputError(
            f"the longest input that it allows is {shown} tokens",
            where=where,
            why=f"at least {SHORTEST_INPUT} were expected",
            fix="mend model_max_length in tokenizer_config.json",
        )
    return int(min(allowed))


def _takes_segments(model: torch.nn.Module, tokenizer: PreTrainedTokenizerBase) -> bool:
    accepted = inspect.signature(model.forward).parameters.keys() & set(tokenizer.model_input_names)
    return "token_type_ids" in accepted and getattr(model.config, "type_vocab_size", 2) > 1


@contextmanager
def one_sentence(where: str) -> Iterator[None]:
    """What transformers, tokenizers or safetensors raise for a broken checkpoint as one InputError, and no log."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    except RefusalCoreError:
        raise
    except BaseException as problem:
        if not is_failure(problem):
            raise
        if is_out_of_memory(problem):
            raise WorkError(f"Not enough memory to load {where}.") from problem
        if isinstance(problem, OSError) and problem.errno in _MACHINE_FAULTS:
            raise WorkError(f"{where} could not be read: {problem.strerror}.") from problem
        raise InputError(
            f"it cannot be loaded ({type(problem).__name__}: {problem})",
            where=where,
            fix="copy or save the checkpoint again",
        ) from problem
    finally:
        logging.set_verbosity(verbosity)
