"""Prompts through a language model into an export: the residual stream at one position, labels, categories and how."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from refusal_core.activations.export_parts import CHUNK, ROWS, UNFINISHED, computed, discard, identity
from refusal_core.activations.export_settings import EXCHANGE, PROMPT, Exported, ExportSettings, Labels
from refusal_core.activations.language_model import CONVENTION, LanguageModel, Tokens
from refusal_core.activations.npz import MEANS
from refusal_core.activations.prompts import Prompt, Skipped
from refusal_core.activations.two_labels import refused_under, two_labels
from refusal_core.activations.write import write_export
from refusal_core.errors import InputError
from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job, Journal
from refusal_core.reports import to_json
from refusal_core.versions import versions


def export(
    prompts: Sequence[Prompt],
    model: LanguageModel,
    output: str | os.PathLike[str],
    settings: ExportSettings,
    labels: Labels | None = None,
    *,
    resume: bool = False,
    job: Job | None = None,
) -> Exported:
    """Write the NPZ of `prompts`. Rows without what they need are left out and named in `skipped`.

    Raises InputError, before the model works, for labels that are not two, rows without any category, layers that the
    model does not have and a journal of other settings; Cancelled when the job is, with the finished parts kept.
    """
    labels, job = labels or Labels(), job or Job()
    layers = _layers(model, settings)
    _check_categories(prompts)
    meaning = labels.meaning or refused_under(labels.fold)
    if labels.classifier is None:
        _, meaning = _column(prompts, labels)  # so that wrong labels are found before hours of work
    rows, skipped = _ready(prompts, model, settings, labels)
    journal = Journal(os.fspath(output) + UNFINISHED, identity(rows, model, settings, layers))
    side = Path(os.fspath(output) + ROWS)
    if not resume:
        discard(journal, side)
    notes = [note] if (note := model.check_padding([tokens for _, tokens in rows])) else []
    responses = computed(rows, model, settings, layers, journal, side, job)
    found = _finished(rows, responses, settings, labels, skipped, job)
    shape = (len(rows), len(layers), model.dimensions)
    vectors = np.memmap(side, np.dtype(settings.dtype), "r", shape=shape)
    kept = [place for place, row in enumerate(found) if row is not None]
    if not kept:
        raise InputError("no row has all that it needs", where=os.fspath(output), why=skipped[0].reason)
    metadata = _metadata(model, settings, layers, labels, meaning, (len(kept), len(skipped)))
    written = (len(kept), *shape[1:]) if len(layers) > 1 else (len(kept), model.dimensions)
    write_export(
        output,
        _blocks(vectors, kept, len(layers) > 1),
        shape=written,
        dtype=settings.dtype,
        labels=[found[place]["label"] for place in kept],
        ids=[found[place]["id"] for place in kept],
        categories=[found[place]["category"] for place in kept],
        members=_members(metadata, layers) | _means(labels, meaning),
    )
    del vectors
    discard(journal, side)
    whole = tuple(found[place] for place in kept)
    ones = sum(row["label"] for row in whole)
    categories = len({row["category"] for row in whole})
    return Exported(written, (len(whole) - ones, ones), categories, metadata, whole, tuple(skipped), tuple(notes))


def _layers(model: LanguageModel, settings: ExportSettings) -> tuple[int, ...]:
    layers = tuple(range(model.layers)) if settings.layers is None else settings.layers
    wrong = [layer for layer in layers if not 0 <= layer < model.layers]
    if wrong or not layers or len(set(layers)) < len(layers):
        raise InputError(
            f"there is no layer {wrong[0]}" if wrong else "name each layer once, and at least one",
            where="--layers",
            why=f"{model.name} has hidden states 0 (embedding) to {model.layers - 1} (after the final norm)",
        )
    return layers


def _check_categories(prompts: Sequence[Prompt]) -> None:
    if not any(prompt.category for prompt in prompts):
        raise InputError(
            "no row has a category",
            where="the prompts",
            why="a study holds out whole categories",
            fix="add a column category, or name it by --map category=COLUMN",
        )


def _column(prompts: Sequence[Prompt], labels: Labels) -> tuple[dict[str, int], str]:
    """Labels of the column by id, and what 1 means."""
    own = [prompt for prompt in prompts if prompt.label is not None]
    if not own:
        raise InputError(
            "no row has a label",
            where="the prompts",
            fix="name its column by --map label=COLUMN, or let the responses be classified by --classify",
        )
    codes, meaning = two_labels(
        [prompt.label for prompt in own], positive=labels.positive, fold=labels.fold, where="the prompts, labels"
    )
    return {prompt.id: code for prompt, code in zip(own, codes, strict=True)}, labels.meaning or meaning


def _ready(
    prompts: Sequence[Prompt], model: LanguageModel, settings: ExportSettings, labels: Labels
) -> tuple[list[tuple[Prompt, Tokens]], list[Skipped]]:
    """The rows that can go through the model, with their prompt's tokens, and the others."""
    ready, skipped = [], []
    longest = min(settings.max_length or model.longest, model.longest)
    needs_response = settings.reads == EXCHANGE or labels.classifier is not None
    if settings.template:
        model.check_template()
    for prompt in prompts:
        reason = None
        if prompt.category is None:
            reason = "it has no category"
        elif labels.classifier is None and prompt.label is None:
            reason = "it has no label"
        elif needs_response and prompt.response is None and not settings.new_tokens:
            reason = "it has no response, and none is generated (--generate N)"
        if reason is None:
            given = prompt.response if settings.reads == EXCHANGE else None
            try:
                tokens = model.tokens(prompt.turns, given, system=settings.system, template=settings.template)
                reason = _too_long(tokens, prompt, settings, longest)
            except InputError as problem:
                reason = str(problem)
        if reason is None:
            ready.append((prompt, tokens))
        else:
            skipped.append(Skipped(prompt.id, reason))
    if not ready:
        raise InputError("no row can be read", where="the prompts", why=f"{skipped[0].id}: {skipped[0].reason}")
    return ready, skipped


def _too_long(tokens: Tokens, prompt: Prompt, settings: ExportSettings, longest: int) -> str | None:
    length = len(tokens.ids) + (settings.new_tokens if prompt.response is None else 0)
    if not tokens.ids:
        return "it has no tokens"
    return f"it is {length:,} tokens long with its response, {longest:,} are read" if length > longest else None


def _finished(
    rows: Sequence[tuple[Prompt, Tokens]],
    responses: list[str | None],
    settings: ExportSettings,
    labels: Labels,
    skipped: list[Skipped],
    job: Job,
) -> list[dict | None]:
    """id, prompt, response, category, label of every row; None, and an entry in `skipped`, where it has no label."""
    classes: list[str | None] = [None] * len(rows)
    if labels.classifier is None:
        codes, _ = _column([prompt for prompt, _ in rows], labels)
    else:
        job.start(len(rows), "responses")
        exchanges = [Exchange(prompt.text, answer or "") for (prompt, _), answer in zip(rows, responses, strict=True)]
        classes = [answer.label for answer in labels.classifier.predict(exchanges, job=job)]
    found: list[dict | None] = []
    for (prompt, _), answer, label in zip(rows, responses, classes, strict=True):
        row = {"id": prompt.id, "prompt": prompt.text, "response": answer, "category": prompt.category}
        if settings.reads == EXCHANGE and not answer:
            skipped.append(Skipped(prompt.id, "its response is empty"))
            found.append(None)
        elif labels.classifier is None:
            found.append({**row, "label": codes[prompt.id]})
        elif label is None:
            skipped.append(Skipped(prompt.id, "its response cannot be classified"))
            found.append(None)
        else:
            found.append({**row, "label": int(labels.fold.is_refused(label)), "class": label})
    return found


def _metadata(
    model: LanguageModel,
    settings: ExportSettings,
    layers: tuple[int, ...],
    labels: Labels,
    meaning: str,
    counts: tuple[int, int],
) -> dict:
    if labels.classifier is None:
        source = "a column of the prompts"
    else:
        info = labels.classifier.info
        source = f"the classifier {info.name} (sha256 {info.digest[:12]}), fold {labels.fold.name}"
    template = model.tokenizer.chat_template if settings.template else None
    return {
        "model": model.description,
        "model_sha256": model.digest,
        "precision": model.precision,
        "layers": list(layers),
        "convention": CONVENTION,
        "pooling": settings.pooling,
        "reads": settings.reads,
        "system": settings.system,
        "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest() if template else None,
        "new_tokens": settings.new_tokens,
        "labels_from": source,
        "label_1_means": meaning,
        "examples": counts[0],
        "left_out": counts[1],
        "versions": versions(("refusal-core", "torch", "transformers", "tokenizers", "numpy")),
    }


def _members(metadata: Mapping[str, object], layers: tuple[int, ...]) -> dict[str, object]:
    what = {PROMPT: "of the prompt", EXCHANGE: "of prompt and response"}[metadata["reads"]]
    place = {"layer": layers[0]} if len(layers) == 1 else {"layers": np.array(layers)}
    return {
        "model": metadata["model"],
        **place,
        "pooling": f"{metadata['pooling']} {what}",
        "metadata": to_json(metadata),
    }


def _means(labels: Labels, meaning: str) -> dict[str, str]:
    """The member that tells a study how to word its rates; none where nobody said it."""
    folded = labels.classifier is not None or meaning == refused_under(labels.fold)
    means = labels.means or ("refused" if folded else None)
    return {MEANS: means} if means else {}


def _blocks(vectors: np.ndarray, kept: list[int], many: bool) -> Iterator[np.ndarray]:
    for start in range(0, len(kept), CHUNK):
        block = vectors[kept[start : start + CHUNK]]
        yield block if many else block[:, 0]
