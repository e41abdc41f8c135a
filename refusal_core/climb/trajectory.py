"""One search told step by step: the sequence each time that its best score rose, and what had changed."""

from __future__ import annotations

from dataclasses import dataclass

from refusal_core.climb.policy import TOKENS, in_logits
from refusal_core.climb.runs import Runs


@dataclass(frozen=True)
class Step:
    """One improvement. `score` is what the evaluation showed and `value` the exact logit, both in logits.

    `changed` are the places, from 0, whose token differs from the step before; all of them at the start and after a
    restart, when `new_start` is True.
    """

    evaluation: int
    score: float
    value: float
    restart: int
    new_start: bool
    tokens: tuple[str, ...]
    changed: frozenset[int]


def steps(runs: Runs, place: int) -> list[Step]:
    """The improvements of the seed at `place`, in order."""
    found: list[Step] = []
    for row in runs.rows(place):
        tokens = tuple(TOKENS[token] for token in runs.sequence[row])
        restart = int(runs.restart[row])
        new_start = not found or found[-1].restart != restart
        before = () if new_start else found[-1].tokens
        changed = frozenset(k for k, token in enumerate(tokens) if new_start or token != before[k])
        numbers = int(runs.at[row]), float(in_logits(runs.score[row])), float(in_logits(runs.value[row]))
        found.append(Step(*numbers, restart, new_start, tokens, changed))
    return found
