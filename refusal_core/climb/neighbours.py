"""The sequences one token away from each seed's current one, and what moving there gains, kept up to date.

A search looks at many neighbours between two moves. So what each token would add at each place is held in a table: an
evaluation is a few look-ups, and a move corrects only the places beside it.
"""

from __future__ import annotations

import numpy as np

from refusal_core.climb.policy import Policy


class Neighbours:
    """Current sequences of many seeds, and the gain of each substitution in millionths of a logit, more being better.

    Neighbour number n of 0 to length * (vocabulary - 1) - 1 changes place n // (vocabulary - 1) to the token that comes
    n % (vocabulary - 1) + 1 after the one there, the first one following the last. `side` is 1 or -1, as the objective
    is to raise or to lower the logit.
    """

    def __init__(self, policy: Policy, sequences: np.ndarray, side: int) -> None:
        size = policy.vocabulary
        self._weights = side * policy.weights
        self._after = side * policy.interactions  # [a, b]: b following a
        self._before = np.ascontiguousarray(self._after.T)
        # [new * vocabulary + old]: what a move from old to new changes for each token beside it
        self._change_after = (self._after[:, None] - self._after[None]).reshape(-1, size)
        self._change_before = (self._before[:, None] - self._before[None]).reshape(-1, size)
        self._size, self._rows = size, policy.length + 2
        # A place before the first and one after the last are corrected like the others, never read: no case for ends.
        self._tokens = np.zeros(len(sequences) * self._rows, dtype=np.int64)
        self._adds = np.zeros((len(sequences) * self._rows, size), dtype=np.int64)
        self._line = np.arange(len(sequences)) * self._rows + 1
        self._wrapped = np.arange(2 * size) % size
        self.reset(np.arange(len(sequences)), sequences)

    def decoded(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For `gains`: the row and the turn (1 to vocabulary - 1) of neighbour numbers [seeds, any]."""
        place, turn = np.divmod(numbers, self._size - 1)
        return place + self._line[:, None], turn + 1

    def gains(self, rows: np.ndarray, turns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What moving to the neighbours with these rows and turns gains, and the new token of each, shaped so."""
        old = self._tokens.take(rows)
        new = self._wrapped.take(old + turns)
        cells = rows * self._size
        old += cells
        cells += new
        gains = self._adds.take(cells)
        gains -= self._adds.take(old)
        return gains, new

    def sequences(self, who: np.ndarray, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Tokens [who, length] with one substitution each."""
        sequences = self._tokens.reshape(-1, self._rows)[who, 1:-1]
        sequences[np.arange(len(who)), rows - self._line[who]] = new
        return sequences

    def reset(self, who: np.ndarray, sequences: np.ndarray) -> None:
        """Give the seeds at `who` new current sequences, [who, length]."""
        adds = np.repeat(self._weights[None], len(who), axis=0)
        adds[:, 1:] += self._after[sequences[:, :-1]]
        adds[:, :-1] += self._before[sequences[:, 1:]]
        self._tokens.reshape(-1, self._rows)[who, 1:-1] = sequences
        self._adds.reshape(-1, self._rows, self._size)[who, 1:-1] = adds

    def move(self, rows: np.ndarray, new: np.ndarray) -> None:
        """Make the substitutions, at most one of each seed."""
        pair = new * self._size + self._tokens[rows]
        self._tokens[rows] = new
        self._adds[rows + 1] += self._change_after[pair]
        self._adds[rows - 1] += self._change_before[pair]
