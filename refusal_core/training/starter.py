"""What the starter is trained on and judged by: the public rows that may be used, and the project's own corpus."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from refusal_core.exchanges import Exchange
from refusal_core.training.data import Parts, TrainingData, read_training_data
from refusal_core.training.rotation import Trial, training_rows
from refusal_core.training.settings import Settings

CORPUS = Path(__file__).with_name("corpus")
CASES = Path(__file__).with_name("cases.jsonl")  # short cases of the kinds that users of refusal detectors report
NOT_ENGLISH = tuple(("category", f"{code}/") for code in ("ko", "zh", "fi"))

STARTER = Trial(
    "starter",
    Settings(epochs=3, evaluations=2, average_share=0.25, freeze_embeddings=True, bfloat16=True, keep=9),
    corpus_times=2,
    source_cap=150,
    vary_copies=True,
)


def corpus_rows(split: str) -> TrainingData:
    """The corpus's rows of the domains that belong to `split`: "train", "development" or "heldout"."""
    domains = json.loads((CORPUS / "domains.json").read_text(encoding="utf-8"))
    names = [name for name, each in domains.items() if each["split"] == split]
    return read_training_data(
        [CORPUS / ("exemplars.jsonl" if name == "museum-library" else f"{name}.jsonl") for name in names]
    )


def case_rows() -> tuple[Exchange, ...]:
    """Cases written for this project, by `kind`; never trained on."""
    return read_training_data([CASES]).exchanges


def public_rows(data: Path, part: str) -> TrainingData:
    """English rows with a licence that allows commercial use of `data`/<part>.jsonl and `data`/<part>_more.jsonl."""
    return read_training_data([data / f"{part}.jsonl", data / f"{part}_more.jsonl"], without=NOT_ENGLISH)


def starter_parts(data: Path, trial: Trial = STARTER) -> Parts:
    """Training and validation rows of the starter. The corpus's held-out part is in neither."""
    public = public_rows(data, "train")
    train = training_rows(trial, public.exchanges, corpus_rows("train").exchanges)
    unused = len(public.exchanges) - (len(train.exchanges) - trial.corpus_times * len(corpus_rows("train").exchanges))
    over = Counter({f"more than {trial.source_cap} of one source and class": unused})
    validation, development = public_rows(data, "validation"), corpus_rows("development")
    return Parts(
        TrainingData(train.exchanges, dict(Counter(public.left_out) + over)),
        TrainingData((*validation.exchanges, *development.exchanges), validation.left_out),
        calibration=development,  # public validation rows share the sources of the training rows: too easy
    )
