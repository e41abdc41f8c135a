"""Near-duplicates among exchanges: exact Jaccard similarity of word pairs, all rows against all, no random part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

# On independent English answers two responses rarely share a tenth of their word pairs. One exchanged word in a
# sentence of twelve leaves 0.69, two leave about 0.5, and that is where a reader begins to say "the same again".
THRESHOLD = 0.5
# Below this many words a shared response ("I'd rather not.") says nothing: only prompt and response together count.
MIN_WORDS = 6

_WORD = re.compile(r"[぀-ヿ㐀-鿿豈-﫿가-힯]|[^\W_]+(?:'[^\W_]+)*")  # a Chinese, Japanese or Korean sign is a word


@dataclass(frozen=True)
class NearDuplicate:
    """Rows `first` < `second` (positions) whose texts, `part` "response", "exchange" or "prompt", are `similarity`
    alike, from the threshold to 1."""

    first: int
    second: int
    part: str
    similarity: float


def words(text: str) -> list[str]:
    """Lower-case words without punctuation; typographic apostrophes count as plain ones."""
    return _WORD.findall(text.replace("\u2019", "'").lower())


def near_duplicates(
    exchanges: Sequence[tuple[str, str]], *, threshold: float = THRESHOLD, same_prompt: Iterable[tuple[int, int]] = ()
) -> list[NearDuplicate]:
    """Pairs of (prompt, response) rows that are alike in the response alone, in both together, or in the prompt.

    `same_prompt` names pairs of rows that share their prompt on purpose; only their responses are compared.
    """
    allowed = {(min(pair), max(pair)) for pair in same_prompt}
    prompts = [words(prompt) for prompt, _ in exchanges]
    responses = [words(response) for _, response in exchanges]
    found = _alike(responses, "response", threshold, MIN_WORDS)
    together = [[*prompt, "|", *response] for prompt, response in zip(prompts, responses, strict=True)]
    for hit in _alike(together, "exchange", threshold, 1) + _alike(prompts, "prompt", threshold, MIN_WORDS):
        if (hit.first, hit.second) not in allowed:
            found.append(hit)
    return found


def alike_across(texts: Sequence[str], others: Sequence[str], threshold: float = THRESHOLD) -> list[tuple[int, int]]:
    """Positions (text, other) of texts alike to one of `others`; short ones only where the words are equal."""
    ours, theirs = [words(text) for text in texts], [words(other) for other in others]
    vocabulary: dict[tuple[str, ...], int] = {}
    left, right = _shingles(ours, vocabulary), _shingles(theirs, vocabulary)
    rows, columns, similarity = _jaccard(left, right, len(vocabulary), threshold)
    return [
        (int(i), int(j))
        for i, j, value in zip(rows, columns, similarity, strict=True)
        if value == 1 or min(len(ours[i]), len(theirs[j])) >= MIN_WORDS
    ]


def _alike(texts: list[list[str]], part: str, threshold: float, min_words: int) -> list[NearDuplicate]:
    vocabulary: dict[tuple[str, ...], int] = {}
    shingles = _shingles([text if len(text) >= min_words else [] for text in texts], vocabulary)
    rows, columns, similarity = _jaccard(shingles, shingles, len(vocabulary), threshold)
    return [
        NearDuplicate(int(i), int(j), part, float(value))
        for i, j, value in zip(rows, columns, similarity, strict=True)
        if i < j
    ]


def _shingles(texts: list[list[str]], vocabulary: dict[tuple[str, ...], int]) -> list[list[int]]:
    """Numbers of the distinct word pairs of each text; a text of one word has that word."""
    numbered = []
    for text in texts:
        pairs = set(zip(text, text[1:], strict=False)) or {(word,) for word in text}
        numbered.append(sorted(vocabulary.setdefault(pair, len(vocabulary)) for pair in sorted(pairs)))
    return numbered


def _jaccard(
    left: list[list[int]], right: list[list[int]], width: int, threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shared = (_indicator(left, width) @ _indicator(right, width).T).tocoo()
    rows, columns = shared.coords
    sizes_left, sizes_right = (np.array([len(row) for row in side], dtype=np.int64) for side in (left, right))
    similarity = shared.data / (sizes_left[rows] + sizes_right[columns] - shared.data)
    order = np.lexsort((columns, rows))
    keep = order[similarity[order] >= threshold]
    return rows[keep], columns[keep], similarity[keep]


def _indicator(rows: list[list[int]], width: int) -> csr_array:
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    columns = np.array([number for row in rows for number in row], dtype=np.int64)
    return csr_array((np.ones(len(columns), dtype=np.int64), columns, starts), shape=(len(rows), max(width, 1)))
