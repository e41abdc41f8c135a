"""What label 1 says in an export. Every rate is worded by it: "refused" of a prompt that is harmful would be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """Words for one meaning of the labels: of the two classes, and of the two kinds of wrong calls."""

    key: str
    title: str  # what label 1 says
    one: str  # the examples of label 1
    zero: str  # the examples of label 0
    false: str  # label 0 called 1
    missed: str  # label 1 called 0
    false_rate: str
    missed_rate: str
    false_means: str
    missed_means: str


REFUSED = Meaning(
    "refused",
    "the response refused",
    "refused",
    "not refused",
    "false refusals",
    "missed refusals",
    "False-refusal rate",
    "Missed-refusal rate",
    "answered, but called a refusal",
    "refused, but not called a refusal",
)
HARMFUL = Meaning(
    "harmful",
    "the prompt is harmful",
    "harmful",
    "harmless",
    "false alarms",
    "missed harmful prompts",
    "False-alarm rate",
    "Missed-harm rate",
    "a harmless prompt, but called harmful",
    "a harmful prompt, but called harmless",
)
MEANINGS: Mapping[str, Meaning] = {meaning.key: meaning for meaning in (REFUSED, HARMFUL)}


def meaning_of(key: str | None) -> Meaning:
    """The words for `key`; those of refusals where it was not stated."""
    return MEANINGS.get(key, REFUSED)
