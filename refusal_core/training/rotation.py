"""Leave whole sources out, train on the rest, score what was left out: how settings are chosen for other people's data.

Rows of a source that was trained on say little about rows of another one. So each turn leaves a group of sources out,
and the settings and the number of steps are those that do best on the sources left out and on the corpus's
development domains. Sources in no group are always trained on.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job
from refusal_core.labels import LABELS
from refusal_core.metrics.report import report
from refusal_core.training.averaging import WeightMean
from refusal_core.training.data import TrainingData
from refusal_core.training.settings import Settings
from refusal_core.training.trainer import features, logits_of, set_up, watcher
from refusal_core.training.variation import varied

# Sources by kind: chat models of 2023 with human labels, and typed tool answers; refusals of models of 2024 and 2025;
# questions back, retrieval and contrast pairs.
GROUPS: Mapping[str, frozenset[str]] = {
    "chat and tools": frozenset(
        {"maxwellreuter/chatgpt-refusals", "openai/safety-rbr-code-and-data", "NVIDIA/When2Call"}
    ),
    "newer refusals": frozenset(
        {
            "xlr8harder/llm-compliance", "UCSC-VLAA/STAR-1", "tml-epfl/llm-past-tense",
            "Antonio-Tresol/gemma3-refusal-axis", "andyrdt/refusal_direction", "JailbreakBench/artifacts",
            "Marker-Inc-Korea/K-OverRefusal", "mkzung/lm-refusal-eval", "AppliedScientific/refusalbench",
        }
    ),
    "questions and retrieval": frozenset(
        {
            "allenai/noncompliance", "IBM/mt-rag-benchmark", "ray-project/llm-applications", "ShishirPatil/gorilla",
            "OpenBMB/Tell_Me_More", "dengyang17/PACIFIC", "MeiqiGuo/AKBC2021-Abg-CoQA", "aliannejadi/qulac",
        }
    ),
}  # fmt: skip
SCORED_AT_MOST = 60  # rows of a source and class
_AVERAGE_EVERY = 10  # steps
_SEED = 0  # of the choice of rows, the same for every trial


@dataclass(frozen=True)
class Trial:
    """One way to train. `source_cap` is the most rows of a source and class (0: all), `corpus_times` how often the
    project's own rows are given, `composites` whether the artificial two-part rows are, `vary_copies` whether all but
    the first copy of a project's row are changed in form, `mean_pooling` whether a BERT model's classifier reads the
    mean of all tokens, which no checkpoint of that architecture can say, instead of the first one."""

    name: str
    settings: Settings
    corpus_times: int = 2
    source_cap: int = 0
    composites: bool = False
    vary_copies: bool = False
    mean_pooling: bool = False


def source_of(exchange: Exchange) -> str:
    return str(exchange.extra.get("source", "not stated"))


def capped(rows: Sequence[Exchange], most: int) -> list[Exchange]:
    """At most `most` rows of each source and class, drawn without looking; 0 keeps all."""
    if not most:
        return list(rows)
    cells: dict[tuple[str, str | None], list[Exchange]] = defaultdict(list)
    for row in rows:
        cells[source_of(row), row.label].append(row)
    draw = random.Random(_SEED)
    return [row for cell in cells.values() for row in (cell if len(cell) <= most else draw.sample(cell, most))]


def training_rows(
    trial: Trial, public: Sequence[Exchange], corpus: Sequence[Exchange], composites: Sequence[Exchange] = ()
) -> TrainingData:
    """The rows that `trial` trains on: public ones capped, the corpus as often as it says."""
    rows = [*capped(public, trial.source_cap), *(composites if trial.composites else ())]
    copies = (
        varied(row, copy) if trial.vary_copies and copy else row for copy in range(trial.corpus_times) for row in corpus
    )
    return TrainingData((*rows, *copies), {})


def turn(
    trial: Trial,
    group: str,
    public: Sequence[Exchange],
    corpus: Sequence[Exchange],
    development: Sequence[Exchange],
    base: Path,
    composites: Sequence[Exchange] = (),
) -> dict[str, Any]:
    """One training without the sources of `group`, scored on them and on `development` at each epoch and at the end."""
    left_out = GROUPS[group]
    seen = [row for row in public if source_of(row) not in left_out]
    parts = {
        "left_out": capped([row for row in public if source_of(row) in left_out], SCORED_AT_MOST),
        "development": list(development),
    }
    kept = [row for row in composites if source_of(row) not in left_out]
    data = training_rows(trial, seen, corpus, kept)
    started = time.monotonic()
    with TemporaryDirectory(prefix="rotation-") as folder:
        scores = _train_and_score(trial, data, parts, base, Path(folder))
    return {
        "trial": trial.name,
        "settings": {**asdict(trial), "settings": asdict(trial.settings)},
        "left_out": group,
        "rows": len(data.exchanges),
        "seconds": round(time.monotonic() - started),
        "scores": scores,
    }


def _train_and_score(
    trial: Trial, data: TrainingData, parts: Mapping[str, list[Exchange]], base: Path, folder: Path
) -> list[dict[str, Any]]:
    from transformers import TrainerCallback

    any_rows = TrainingData(tuple(parts["development"][:1]), {})
    trainer, tokenizer, settings = set_up(data, any_rows, base, folder, trial.settings)
    if trial.mean_pooling:
        _pool_by_mean(trainer.model.bert)
    trainer.args.save_strategy = trainer.args.eval_strategy = "no"
    inputs = {
        name: features(TrainingData(tuple(rows), {}), tokenizer, settings.max_length) for name, rows in parts.items()
    }
    found: list[dict[str, Any]] = []
    mean = WeightMean()

    def score(step: int, weights: str) -> None:
        for name, rows in parts.items():
            found.append(
                {"step": step, "weights": weights, "part": name, **_scores(rows, logits_of(trainer, inputs[name]))}
            )
        trainer.model.train()

    class AtEachEpoch(TrainerCallback):
        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            score(state.global_step, "last")

    trainer.add_callback(watcher(settings, mean, Job()))
    trainer.add_callback(AtEachEpoch())
    trainer.train()
    if mean.taken:
        mean.put(trainer.model)
        score(trainer.state.global_step, f"mean of {mean.taken}")
    return found


def _pool_by_mean(encoder: Any) -> None:
    pool, masks = encoder.pooler.forward, []

    def keep_mask(_: Any, __: Any, named: dict[str, Any]) -> None:
        masks[:] = [named["attention_mask"].unsqueeze(-1)]

    def forward(states: Any) -> Any:
        mask = masks[0].to(states.dtype)
        return pool(((states * mask).sum(1) / mask.sum(1)).unsqueeze(1))

    encoder.register_forward_pre_hook(keep_mask, with_kwargs=True)
    encoder.pooler.forward = forward


def _scores(rows: Sequence[Exchange], logits: np.ndarray) -> dict[str, Any]:
    """`macro_f1` is over the classes with at least ten rows, None without any."""
    true = [str(row.label) for row in rows]
    predicted = [LABELS[i] for i in logits.argmax(axis=1)]
    present = [label for label in LABELS if true.count(label) >= 10]
    scores = report(true, predicted, LABELS)
    f1 = {c.label: c.f1.value for c in scores.classes}
    right: dict[str, list[bool]] = defaultdict(list)
    for row, label in zip(rows, predicted, strict=True):
        right[source_of(row)].append(row.label == label)
    return {
        "n": len(rows),
        "accuracy": round(float(np.mean([a == b for a, b in zip(true, predicted, strict=True)])), 4),
        "macro_f1": round(float(np.mean([f1[label] or 0.0 for label in present])), 4) if present else None,
        "f1": {label: round(f1[label] or 0.0, 4) for label in present},
        "by_source": {name: [sum(each), len(each)] for name, each in sorted(right.items())},
    }
