"""The rows of a training: which may be used, and how one file is split."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refusal_core.classifier.texts import clean, split_reasoning
from refusal_core.errors import InputError
from refusal_core.exchange_files import read_exchanges
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS

GROUPED, PLAIN = "grouped", "plain"
SPLITS = (GROUPED, PLAIN)
SHARES = (0.8, 0.1, 0.1)  # train, validation, test


@dataclass(frozen=True)
class TrainingData:
    """Labelled exchanges; `left_out` counts the rows that were not used, by reason."""

    exchanges: tuple[Exchange, ...]
    left_out: dict[str, int]

    def digest(self) -> str:
        """SHA-256 over the rows in their order, as far as they decide a training."""
        total = hashlib.sha256()
        for row in self.exchanges:
            for text in (row.prompt, row.response, row.label or ""):
                encoded = text.encode("utf-8", "surrogatepass")
                total.update(len(encoded).to_bytes(8, "little") + encoded)
        return total.hexdigest()


@dataclass(frozen=True)
class Parts:
    """The parts of a training; `test` may be empty. `calibration` rows fit the temperature, the validation rows where
    there are none; they should be like what the classifier will read, and unlike the training rows."""

    train: TrainingData
    validation: TrainingData
    test: TrainingData = TrainingData((), {})
    calibration: TrainingData = TrainingData((), {})


def read_training_data(
    files: Sequence[Path], *, commercial_only: bool = True, without: Sequence[tuple[str, str]] = ()
) -> TrainingData:
    """Rows of `files` with a label of the five classes. A row that cannot be used is counted, never repaired.

    commercial_only keeps rows whose `license` names one that allows commercial use (`is_commercial`). `without` lists
    (field, beginning) pairs: a row whose field begins so is left out, for example ("category", "ko/").
    """
    kept: list[Exchange] = []
    left_out: Counter[str] = Counter()
    for file in files:
        for row in read_exchanges(file, need_label=True):
            reason = _reason_to_leave_out(row, commercial_only, without)
            if reason:
                left_out[reason] += 1
            else:
                kept.append(row)
    if not kept:
        raise InputError(
            "no row is left to train on", where=", ".join(f.name for f in files), why=f"left out: {dict(left_out)}"
        )
    return TrainingData(tuple(kept), dict(left_out))


def is_commercial(licence: str) -> bool:
    """Whether `licence` names one that allows commercial use, and nothing in it takes that back.

    Known are MIT, Apache-2.0, BSD, CC0, CC-BY and ODC-BY; "NC", "ND", "SA", "non-commercial" and "research"
    anywhere rule it out, as does a name that is not known.
    """
    parts = set(re.split(r"[^A-Z0-9]+", licence.upper()))
    if parts & {"NC", "ND", "SA", "NONCOMMERCIAL", "RESEARCH", "NON"}:
        return False
    return bool(parts & {"MIT", "APACHE", "BSD", "CC0"}) or {"BY"} <= parts and bool(parts & {"CC", "ODC"})


def _reason_to_leave_out(row: Any, commercial_only: bool, without: Sequence[tuple[str, str]]) -> str | None:
    if not isinstance(row, Exchange):
        return "not a labelled exchange"
    if row.label not in LABELS:
        return "unknown label"
    if commercial_only and not is_commercial(str(row.extra.get("license", ""))):
        return "licence not known to allow commercial use"
    for field, beginning in without:
        if str(row.extra.get(field, "")).startswith(beginning):
            return f"{field} begins with {beginning}"
    return split_reasoning(clean(row.response)).error


def split(data: TrainingData, *, how: str = GROUPED, seed: int = 0) -> Parts:
    """`data` as training, validation and test rows, about 80, 10 and 10 percent of each class.

    "grouped" keeps rows of one prompt (equal but for case, punctuation and spaces) in one part; "plain" splits each
    class by itself, whatever the prompts. The same rows and seed give the same parts, in file order. Raises InputError
    when a class is in fewer than three places, since each part needs it.
    """
    if how not in SPLITS:
        raise InputError(f"there is no split {how!r}", why=f"one of {', '.join(SPLITS)} was expected")
    rows = data.exchanges
    key = _prompt_key if how == GROUPED else None
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        groups[key(row) if key else at].append(at)
    part_of = _dealt([[rows[at].label for at in group] for group in groups.values()], seed)
    places: tuple[list[int], list[int], list[int]] = ([], [], [])
    for group, part in zip(groups.values(), part_of, strict=True):
        places[part].extend(group)
    for label in LABELS:
        if not all(any(rows[at].label == label for at in part) for part in places):
            raise InputError(
                f"{label} cannot be in all three parts",
                why="at least three rows of each class were expected" + (", under different prompts" if key else ""),
                fix="add rows, or give --train and --validation files of your own",
            )
    train, validation, test = (TrainingData(tuple(rows[at] for at in sorted(part)), {}) for part in places)
    return Parts(TrainingData(train.exchanges, data.left_out), validation, test)


def _prompt_key(row: Exchange) -> str:
    return " ".join(re.findall(r"\w+", row.prompt.lower())) or row.prompt


def _dealt(groups: Sequence[Sequence[str]], seed: int) -> list[int]:
    """The part of each group (of labels): large groups first, each to the part that lacks its labels most."""
    wanted = Counter(label for group in groups for label in group)
    have = [Counter(), Counter(), Counter()]
    order = list(range(len(groups)))
    random.Random(seed).shuffle(order)
    order.sort(key=lambda at: -len(groups[at]))
    parts = [0] * len(groups)
    for at in order:
        counts = Counter(groups[at])

        def lack(part: int, counts: Counter = counts) -> float:
            """How far the part is behind its share in these labels; ties go to the training rows."""
            behind = (
                n * (SHARES[part] - have[part][label] / wanted[label]) / SHARES[part] for label, n in counts.items()
            )
            return sum(behind)

        parts[at] = max(range(3), key=lambda part: (round(lack(part), 9), -part))
        have[parts[at]] += counts
    return parts
