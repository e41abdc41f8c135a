"""What a column says of label 0 and 1: numbers, truth values, our classes under a fold, or texts that were named."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from refusal_core.errors import InputError, one_line
from refusal_core.labels import DEFAULT_FOLD, LABELS, Fold

_NUMBERS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}


def two_labels(
    values: Sequence[object], *, positive: Collection[str] = (), fold: Fold = DEFAULT_FOLD, where: str
) -> tuple[list[int], str]:
    """0 or 1 for each value, and in words what 1 means.

    With `positive` those texts are 1 and all others 0. Otherwise 0 and 1, true and false are read as they are, and our
    five classes are folded. Raises InputError for other values, which it lists, and for `positive` that never comes.
    """
    texts = [str(value).strip() for value in values]
    found = sorted(set(texts))
    shown = ", ".join(f'"{one_line(text, 30)}"' for text in found[:6]) + (", …" if len(found) > 6 else "")
    if positive:
        if lacking := set(positive) - set(found):
            raise InputError(
                f'no example has the label "{sorted(lacking)[0]}"',
                where=where,
                why=f"the labels are {shown}",
                fix="name labels that are there by --positive",
            )
        return [int(text in positive) for text in texts], " or ".join(sorted(positive))
    if all(text.lower() in _NUMBERS for text in texts):
        return [_NUMBERS[text.lower()] for text in texts], "as the column says"
    if all(text in LABELS for text in texts):
        return [int(fold.is_refused(text)) for text in texts], refused_under(fold)
    raise InputError(
        f"the labels are {shown}",
        where=where,
        why="0 and 1, true and false, or this project's five classes are read by themselves",
        fix="say which count as 1 by --positive, for example --positive harmful",
    )


def refused_under(fold: Fold) -> str:
    """What 1 means where the classes of responses are folded."""
    return f"refused ({fold.name})"
