"""What a key of a log row or results file names: split, evaluation set, metric, class."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from refusal_core.labels import LABELS

_SPLITS = {
    "train": "train",
    "training": "train",
    "eval": "eval",
    "val": "eval",
    "valid": "eval",
    "validation": "eval",
    "dev": "eval",
    "test": "test",
    "predict": "predict",
}
_SPLIT = re.compile(rf"({'|'.join(_SPLITS)})(?:[_/.\- ]+)(.+)", re.IGNORECASE | re.DOTALL)
_EXACT = {
    "acc": "accuracy",
    "accuracy_score": "accuracy",
    "balanced_acc": "balanced_accuracy",
    "balanced_accuracy_score": "balanced_accuracy",
    "f1_score": "f1",
    "f_score": "f1",
    "precision_score": "precision",
    "recall_score": "recall",
    "matthews_corrcoef": "mcc",
    "matthews_correlation": "mcc",
    "cohen_kappa": "kappa",
    "cohen_kappa_score": "kappa",
    "auc": "roc_auc",
    "auroc": "roc_auc",
    "roc_auc_score": "roc_auc",
    "lr": "learning_rate",
    "gradient_norm": "grad_norm",
    "grad_norm_total": "grad_norm",
    "logloss": "log_loss",
    "brier_score": "brier",
}
_AVERAGE = "macro|weighted|micro"
_SCORE = "f1|precision|recall"
_BY_CLASS = f"{_SCORE}|support"
_FIRST = re.compile(rf"({_AVERAGE})_(?:avg_|average_)?({_SCORE})(?:_score)?")
_LAST = re.compile(rf"({_SCORE})(?:_score)?_({_AVERAGE})(?:_avg|_average)?")
_CLASS_LAST = re.compile(rf"({_BY_CLASS})(?:_score)?([_/.\-])(.+)", re.IGNORECASE | re.DOTALL)
_CLASS_FIRST = re.compile(rf"(.+)([_/.\-])({_BY_CLASS})(?:[_-]score)?", re.IGNORECASE | re.DOTALL)
_TIMING = ("runtime", "samples_per_second", "steps_per_second")

STEP_KEYS = ("train/global_step", "global_step", "trainer/global_step", "step", "current_steps", "_step", "iteration")
EPOCH_KEYS = ("epoch", "train/epoch", "eval/epoch", "epochs", "current_epoch")
TIME_KEYS = ("timestamp", "_timestamp", "wall_time", "time", "created_at")


@dataclass(frozen=True)
class Name:
    """What one key names; see `model.Curve` for the words."""

    metric: str
    split: str
    dataset: str
    label: str | None


@lru_cache(maxsize=4096)
def names_of(keys: tuple[str, ...], unprefixed: str = "") -> dict[str, Name]:
    """Each of the keys that stand together in one row or file, with what it names.

    What one key means follows from the others: an evaluation set is a prefix with a loss and a runtime of its own, and
    "f1_x" is the F1 of a class x only where "precision_x" or "recall_x" stands beside it. `unprefixed` is the split of
    keys without one.
    """
    parted = {key: _split_of(key) for key in keys}
    sets = _evaluation_sets(parted.values())
    rests: dict[str, tuple[str, str, str]] = {}
    for key, (split, rest) in parted.items():
        dataset = max((s for s in sets.get(split, ()) if _starts(rest, s)), key=len, default="")
        rests[key] = (split, dataset, rest[len(dataset) + 1 :] if dataset else rest)
    classes = _classes(rests.values())
    named = {}
    for key, (split, dataset, rest) in rests.items():
        metric, label = _metric_of(rest, classes.get((split, dataset), ()))
        if key == "train_loss" and "train_runtime" in parted:  # the row at the end of a training
            metric = "mean_loss"
        named[key] = Name(metric, split or unprefixed, dataset, label)
    return named


def split_word(text: str) -> str:
    """The split that a heading or file name speaks of: "test", "eval", "train", or ""."""
    found = {_SPLITS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _SPLITS and word != "predict"}
    return found.pop() if len(found) == 1 else ""


def _split_of(key: str) -> tuple[str, str]:
    found = _SPLIT.fullmatch(key.strip())
    return (_SPLITS[found[1].lower()], found[2]) if found else ("", key.strip())


def _starts(rest: str, name: str) -> bool:
    return rest.startswith(name) and len(rest) > len(name) and rest[len(name)] in "_/"


def _evaluation_sets(parted: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Split to the names of its evaluation sets: what stands before both "_loss" and a timing of the same row."""
    losses: dict[str, set[str]] = {}
    timings: dict[str, set[str]] = {}
    for split, rest in parted:
        if split in ("eval", "test", "predict"):
            for ending, found in (("loss", losses), *((timing, timings) for timing in _TIMING)):
                if rest.endswith(ending) and len(rest) > len(ending) + 1 and rest[-len(ending) - 1] in "_/":
                    found.setdefault(split, set()).add(rest[: -len(ending) - 1])
    return {split: losses.get(split, set()) & names for split, names in timings.items()}


def _classes(rests: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], set[str]]:
    """The class names of each evaluation: those that two different scores speak of, or "f1/<one of several>"."""
    seen: dict[tuple[str, str], dict[str, set[str]]] = {}
    slashed: dict[tuple[str, str], set[str]] = {}
    for split, dataset, rest in rests:
        for label, score, joint in _readings(rest):
            if _plain(label) not in (
                *_AVERAGE.split("|"),
                "macro_avg",
                "weighted_avg",
                "micro_avg",
                "score",
                "average",
            ):
                seen.setdefault((split, dataset), {}).setdefault(label, set()).add(score)
                if joint == "/" or label in LABELS:
                    slashed.setdefault((split, dataset), set()).add(label)
    return {
        place: {label for label, scores in labels.items() if len(scores) > 1}
        | (found if len(found := slashed.get(place, set())) > 1 else set())
        for place, labels in seen.items()
    }


def _readings(rest: str) -> Iterable[tuple[str, str, str]]:
    """(class, score, joint) that a key could mean: "f1_refuse" and "refuse_f1" alike."""
    if found := _CLASS_LAST.fullmatch(rest):
        yield found[3], found[1].lower(), found[2]
    if found := _CLASS_FIRST.fullmatch(rest):
        yield found[1], found[3].lower(), found[2]


def _metric_of(rest: str, classes: Collection[str]) -> tuple[str, str | None]:
    for label, score, _ in _readings(rest) if classes else ():
        if label in classes:
            return score, label
    plain = _plain(rest)
    if found := _FIRST.fullmatch(plain):
        return f"{found[1]}_{found[2]}", None
    if found := _LAST.fullmatch(plain):
        return f"{found[2]}_{found[1]}", None
    return _EXACT.get(plain, plain if plain in _KEPT else rest.strip().lower()), None


_KEPT = frozenset(
    (*_EXACT.values(), "loss", "log_loss", "ece", "perplexity", "specificity", *_TIMING, "samples", "total_flos")
)


def _plain(rest: str) -> str:
    """Lower case, without a remark in brackets at the end, with "_" between words."""
    words = re.sub(r"\s*\([^()]*\)\s*$", "", rest.strip().lower())
    return re.sub(r"[\s/.\-]+", "_", words)
