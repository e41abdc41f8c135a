"""What a method found for each seed: every time that its best score rose, and what follows from that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Runs:
    """Searches of one method, one a seed. Logits are in millionths, int64; places count from 0, evaluations from 1.

    `seeds` [S]; `evaluations` [S] spent; `restarts` [S]. Each time that an evaluation scored better than all before it
    in its run makes one row of the improvements, ordered by seed and evaluation; rows `offsets[s]` to `offsets[s + 1]`
    (int64 [S + 1], at least one row a seed) belong to seed s. Of each row: `at` the evaluation, `score` what it showed,
    `value` the exact logit (the same without noise), `restart` how many restarts came before, `sequence` uint8 [rows,
    length]. `fresh` [S] is one more evaluation of each result, after the search and outside its budget.
    """

    method: str
    seeds: np.ndarray
    evaluations: np.ndarray
    restarts: np.ndarray
    fresh: np.ndarray
    offsets: np.ndarray
    at: np.ndarray
    score: np.ndarray
    value: np.ndarray
    restart: np.ndarray
    sequence: np.ndarray

    @property
    def result(self) -> np.ndarray:
        """The row of the improvements that is the result, the best score of the run, int64 [S]."""
        return self.offsets[1:] - 1

    @property
    def best(self) -> np.ndarray:
        """The exact logit of each result, int64 [S]."""
        return self.value[self.result]

    @property
    def reported(self) -> np.ndarray:
        """The score that each search reports for its result, int64 [S]."""
        return self.score[self.result]

    def rows(self, place: int) -> range:
        """The improvements of the seed at `place`."""
        return range(int(self.offsets[place]), int(self.offsets[place + 1]))

    def standing(self, budgets: np.ndarray) -> np.ndarray:
        """The row that was best after each of `budgets` evaluations, int64 [S, len(budgets)], budgets from 1 up."""
        budgets = np.asarray(budgets, dtype=np.int64)
        span = max(int(self.at.max()), int(budgets.max())) + 1
        place = np.repeat(np.arange(len(self.seeds)), np.diff(self.offsets))
        wanted = np.arange(len(self.seeds))[:, None] * span + budgets
        return np.searchsorted(place * span + self.at, wanted, side="right") - 1


NEVER = np.iinfo(np.int64).min  # below every score


class Recorder:
    """Gathers improvements, in any order of seeds, and the best score of each run so far. More is better here."""

    def __init__(self, count: int) -> None:
        self.best = np.full(count, NEVER)
        self._pieces: list[tuple[np.ndarray, ...]] = []

    def add(self, place, at, score, value, restart, sequence) -> None:
        """Improvements, one a row of each array; those of one seed in order of evaluation."""
        self._pieces.append((place, at, score, value, restart, sequence.astype(np.uint8)))
        self.best[place] = score  # the last one given for a place stays: the best of them

    def runs(self, method: str, seeds: np.ndarray, evaluations, restarts, fresh_errors: np.ndarray, side: int) -> Runs:
        """Everything gathered, ordered, with logits turned back by `side` (1 or -1)."""
        place, at, score, value, restart, sequence = (
            np.concatenate(column) for column in zip(*self._pieces, strict=True)
        )
        order = np.lexsort((at, place))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(seeds)))])
        score, value = side * score[order], side * value[order]
        return Runs(
            method=method,
            seeds=seeds,
            evaluations=evaluations,
            restarts=restarts,
            fresh=value[offsets[1:] - 1] + fresh_errors,
            offsets=offsets,
            at=at[order],
            score=score,
            value=value,
            restart=restart[order],
            sequence=sequence[order],
        )


def joined(parts: list[Runs]) -> Runs:
    """Runs of further seeds of one method, one after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("seeds", "evaluations", "restarts", "fresh", "at", "score", "value", "restart", "sequence")
    }
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return Runs(method=parts[0].method, offsets=np.concatenate([[0], np.cumsum(lengths)]), **columns)
