"""Loading a causal language model for the exporter: safetensors or GGUF alone, no code from the checkpoint."""

from __future__ import annotations

import hashlib
from pathlib import Path

from refusal_core import limits
from refusal_core.activations.language_model import LanguageModel
from refusal_core.classifier import hub
from refusal_core.classifier.checkpoint import one_sentence
from refusal_core.classifier.folder import read_json
from refusal_core.errors import InputError, MissingPackage

_ALSO = ("chat_template.jinja", "generation_config.json")  # how a chat is written, and where an answer ends
PRECISIONS = ("float32", "bfloat16", "float16")
_DIGESTED = (".safetensors", ".json", ".jinja", ".model", ".txt")


def load_language_model(name: str, *, device: str = "cpu", precision: str = "float32") -> LanguageModel:
    """Load a causal model from a folder, a .gguf file, or a hub id with an optional `@revision`.

    Weights are read from safetensors or GGUF alone, without code from the checkpoint, and computed in `precision`.
    Raises InputError for what is no such model, WorkError when the hub is not reached or memory runs out, and
    MissingPackage for GGUF without the package.
    """
    folder, file, revision = _resolve(name)
    with one_sentence(name):
        return _loaded(name, folder, file, revision, device, precision)


def _resolve(name: str) -> tuple[Path, str | None, str | None]:
    """Folder, GGUF file in it or None, and the hub's commit or None."""
    path = Path(name)
    if path.is_dir():
        return path, None, None
    if path.is_file() and path.suffix == ".gguf":
        return path.parent, path.name, None
    parsed = hub.parse_name(name)
    if path.exists() or parsed is None:
        raise InputError(
            "this is a file" if path.exists() else "there is no such folder, and it is not a hub id",
            where=name,
            fix="name a folder as save_pretrained writes it, a .gguf file, or a hub id such as owner/name@revision",
        )
    found = hub.fetch(*parsed, also=_ALSO)
    return found.path, None, found.revision


def _loaded(
    name: str, folder: Path, file: str | None, revision: str | None, device: str, precision: str
) -> LanguageModel:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = folder.name if file is None else file
    options = {"local_files_only": True, "trust_remote_code": False}
    if file is None:
        _check_folder(folder, where)
        options["use_safetensors"] = True
    else:
        if not _has_gguf():
            raise MissingPackage("gguf", purpose="Reading a .gguf file", extra="gguf")
        options["gguf_file"] = file
    tokenizer = AutoTokenizer.from_pretrained(folder, **{k: v for k, v in options.items() if k != "use_safetensors"})
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=getattr(torch, precision), output_loading_info=True, **options
    )
    if missing := sorted(report["missing_keys"]):
        raise InputError(
            f"its weights lack {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else ""),
            where=where,
            why="random numbers would stand in their place",
            fix="name a folder with the whole model",
        )
    return LanguageModel(_short(name), _digest(folder, file), revision, model.to(device), tokenizer)


def _check_folder(folder: Path, where: str) -> None:
    if not (folder / "config.json").is_file():
        raise InputError(
            "there is no config.json", where=where, why="a folder as save_pretrained writes it was expected"
        )
    config = read_json(folder / "config.json", where)
    if "auto_map" in config:
        raise InputError(
            "its architecture comes as code in the checkpoint",
            where=where,
            why="code from checkpoints is not run",
            fix="name a checkpoint of an architecture that transformers has built in",
        )
    if not any(folder.glob("*.safetensors")):
        raise InputError(
            "it has no safetensors weights",
            where=where,
            why="other formats can run code and are not opened",
            fix="save it again with save_pretrained, which writes safetensors",
        )
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    limits.check_size(size, limits.LANGUAGE_MODEL_BYTES, what="the model", where=where, fix="name a smaller one")


def _digest(folder: Path, file: str | None) -> str:
    """SHA-256 of the GGUF file, or over names and contents of the files in the folder that decide the numbers."""
    if file is not None:
        with (folder / file).open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    total = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.suffix in _DIGESTED and path.is_file()):
        with path.open("rb") as handle:
            total.update(f"{path.name} {hashlib.file_digest(handle, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


def _short(name: str) -> str:
    """No path of this machine goes into a file."""
    return name.partition("@")[0] if hub.parse_name(name) and not Path(name).exists() else Path(name).name


def _has_gguf() -> bool:
    from importlib.util import find_spec

    return find_spec("gguf") is not None
