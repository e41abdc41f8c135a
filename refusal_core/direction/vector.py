"""The direction as a file of its own, with a card that says what it is of."""

from __future__ import annotations

import io

import numpy as np

from refusal_core.direction.result import Study
from refusal_core.reports import to_json

SCHEMA = "refusal-direction/1"
NAME = "direction"  # of the tensor


def card(study: Study, study_sha256: str) -> dict:
    """What a direction is of: model, layer, pooling, threshold, digests, and the score it was held out at."""
    train, test = study.inputs["train"], study.inputs["test"]
    score = getattr(study.test, "balanced_accuracy", None)
    return {
        "schema": SCHEMA,
        "direction": "normalised difference of class means, label 1 minus label 0",
        "dimensions": train["dimensions"],
        "dtype": "float64",
        **{key: study.extraction[key] for key in ("model", "layer", "pooling", "label_means")},
        "layer_index": train["layer_index"],
        **study.direction,
        "call": "1 when x . direction >= threshold, x in the export's own coordinates",
        "train": _input(train),
        "test": _input(test) if test else None,
        "split": study.split,
        "test_balanced_accuracy": score,
        "answer": study.headline,
        "study_sha256": study_sha256,
    }


def card_json(study: Study, study_sha256: str) -> str:
    """The card as a file."""
    return to_json(card(study, study_sha256), indent=2) + "\n"


def as_npy(study: Study) -> bytes:
    """The direction as a .npy array, little-endian float64 [dimensions]."""
    file = io.BytesIO()
    np.save(file, study.unit.astype("<f8"), allow_pickle=False)
    return file.getvalue()


def as_safetensors(study: Study, study_sha256: str) -> bytes:
    """The direction as one tensor of a safetensors file, with the card in its metadata."""
    from safetensors.numpy import save

    return save({NAME: study.unit.astype("<f8")}, metadata={"card": to_json(card(study, study_sha256))})


def _input(described: dict) -> dict:
    return {key: described[key] for key in ("sha256", "examples", "part") if key in described}
