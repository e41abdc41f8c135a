"""A simulated token policy: a refusal logit for every sequence of made-up tokens, and the exact best sequence.

The logit of tokens x_1 .. x_L is

    bias + sum over i of weights[i, x_i] + sum over i of interactions[x_i, x_{i+1}]

It stands for no real model. All numbers are held as whole millionths of a logit (UNIT), so that sums are exact in any
order: equal sequences score equal, a tie is a tie, and regret cannot come out as -1e-16.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from refusal_core.limits import CLIMB_LENGTH, CLIMB_VOCABULARY

UNIT = 1_000_000  # of the whole numbers here to one logit
OBJECTIVES = ("raise", "lower")

_HEADS = ("bal", "dov", "fen", "gim", "lur", "mip", "nel", "tev")
_TAILS = ("a", "e", "i", "o", "u", "ka", "ni", "ru")
TOKENS = tuple(head + tail for tail in _TAILS for head in _HEADS)


@dataclass(frozen=True, eq=False)
class Policy:
    """The table that scores sequences, in millionths of a logit.

    `bias` is one whole number; `weights` int64 [length, vocabulary], the part of each token at each place;
    `interactions` int64 [vocabulary, vocabulary], added where the second token directly follows the first. Length is 1
    to 64, vocabulary 2 to 64. The arrays are read-only. Raises ValueError for other shapes or types.
    """

    bias: int
    weights: np.ndarray
    interactions: np.ndarray

    def __post_init__(self) -> None:
        for name in ("weights", "interactions"):
            table = getattr(self, name)
            if table.dtype != np.int64 or table.ndim != 2:
                raise ValueError(f"{name} must be a table of int64, not {table.dtype} of shape {table.shape}")
            table = table.copy()
            table.flags.writeable = False
            object.__setattr__(self, name, table)
        if not (1 <= self.length <= CLIMB_LENGTH and 2 <= self.vocabulary <= CLIMB_VOCABULARY):
            raise ValueError(f"length {self.length} or vocabulary {self.vocabulary} is out of range")
        if self.interactions.shape != (self.vocabulary, self.vocabulary):
            raise ValueError(f"interactions must be {self.vocabulary} by {self.vocabulary}")

    @property
    def length(self) -> int:
        return self.weights.shape[0]

    @property
    def vocabulary(self) -> int:
        return self.weights.shape[1]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The made-up token of each index."""
        return TOKENS[: self.vocabulary]

    @property
    def neighbours(self) -> int:
        """How many sequences differ from a given one in exactly one place: length * (vocabulary - 1)."""
        return self.length * (self.vocabulary - 1)

    @property
    def sha256(self) -> str:
        """Of bias, weights and interactions as little-endian int64."""
        parts = (np.array([self.length, self.vocabulary, self.bias]), self.weights, self.interactions)
        return hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in parts)).hexdigest()

    def logits(self, sequences: np.ndarray) -> np.ndarray:
        """Exact logits in millionths, int64 [...], of token indices [..., length], each 0 to vocabulary - 1."""
        total = np.full(sequences.shape[:-1], self.bias, dtype=np.int64)
        for place in range(self.length):
            total += self.weights[place, sequences[..., place]]
            if place:
                total += self.interactions[sequences[..., place - 1], sequences[..., place]]
        return total

    def words(self, sequence: np.ndarray) -> str:
        """Token indices [length] as words with a space between."""
        return " ".join(TOKENS[token] for token in sequence)

    def optimum(self, objective: str = "raise") -> Optimum:
        """The highest logit ("raise") or the lowest ("lower") over all vocabulary ** length sequences, exactly.

        Dynamic programming over the chain (A. J. Viterbi 1967, IEEE Trans. Inf. Theory 13, 260-269) in
        length * vocabulary**2 steps. Among equally good sequences the one with the lowest token indices from the end
        backwards is given. Raises ValueError for another objective.
        """
        side = sign(objective)
        best = side * self.weights[0]  # of all prefixes that end in each token
        came_from = []
        for place in range(1, self.length):
            through = best[:, None] + side * self.interactions
            came_from.append(np.argmax(through, axis=0))
            best = through.max(axis=0) + side * self.weights[place]
        sequence = [int(np.argmax(best))]
        for previous in reversed(came_from):
            sequence.append(int(previous[sequence[-1]]))
        return Optimum(self.bias + side * int(best.max()), tuple(reversed(sequence)))


@dataclass(frozen=True)
class Optimum:
    """The exact best logit, in millionths, and a sequence of token indices that has it."""

    value: int
    sequence: tuple[int, ...]


def sign(objective: str) -> int:
    """1 for "raise", -1 for "lower": what a logit is multiplied by so that more is better. ValueError for others."""
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, not {objective!r}")
    return 1 if objective == "raise" else -1


def make_policy(seed: int, length: int, vocabulary: int, interactions: float = 1.0) -> Policy:
    """A policy drawn from `seed`; the same arguments give the same policy.

    Bias is normal with sd 1, each weight normal with sd 1/sqrt(length), each interaction normal with sd
    `interactions`/sqrt(length): the logit of a random sequence varies by about sqrt(1 + interactions**2), whatever the
    length. `seed` is a whole number from 0, `interactions` from 0 (none). Raises ValueError for sizes out of range.
    """
    rng = np.random.default_rng([seed, _POLICY_STREAM])
    scale = 1 / np.sqrt(length)
    bias = rng.standard_normal()
    weights = rng.standard_normal((length, vocabulary)) * scale
    pairs = rng.standard_normal((vocabulary, vocabulary)) * (scale * interactions)
    return Policy(int(units(bias)), units(weights), units(pairs))


_POLICY_STREAM = 0x706F6C  # apart from the streams of the searches, which have small numbers


def units(logits: np.ndarray | float) -> np.ndarray:
    """Logits to the nearest whole millionths, int64."""
    return np.rint(np.asarray(logits) * UNIT).astype(np.int64)


def in_logits(millionths: np.ndarray) -> np.ndarray:
    """Whole millionths as logits, float64."""
    return np.asarray(millionths) / UNIT
