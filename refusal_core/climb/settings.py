"""What a demonstration is run with, checked once for the page and the command."""

from __future__ import annotations

import hashlib
import math
import operator
from dataclasses import asdict, dataclass

from refusal_core import limits
from refusal_core.climb.policy import OBJECTIVES, UNIT
from refusal_core.errors import InputError
from refusal_core.reports import to_json


@dataclass(frozen=True)
class Settings:
    """Settings of a demonstration. Raises InputError, naming the setting, for a value that is out of range.

    `seeds` is how many searches run, with the seeds 0 to seeds - 1; `budget` is how many evaluations each may spend;
    `fanout` how many substitutions the search tries before it moves. `length`, `vocabulary`, `interactions` (sd of the
    neighbour terms as a multiple of that of the weights) and `policy_seed` make the policy. `noise` is the sd of the
    normal error of one evaluation, in logits.
    """

    seeds: int = 20
    budget: int = 200
    fanout: int = 4
    length: int = 8
    vocabulary: int = 12
    interactions: float = 1.0
    noise: float = 0.0
    objective: str = "raise"
    policy_seed: int = 0

    def __post_init__(self) -> None:
        for name, (low, high) in WHOLE.items():
            object.__setattr__(self, name, _whole(name, getattr(self, name), low, high))
        for name in REAL:
            object.__setattr__(self, name, _real(name, getattr(self, name)))
        if self.objective not in OBJECTIVES:
            raise InputError(f'"{self.objective}" is no objective', where="objective", fix="use raise or lower")
        if 0 < self.noise < 1 / UNIT:
            raise InputError(f"{self.noise:g} is too small to be told from none", where="noise", fix="use 0")
        if self.seeds * self.budget > limits.CLIMB_EVALUATIONS:
            raise InputError(
                f"{self.seeds:,} seeds of {self.budget:,} evaluations are {self.seeds * self.budget:,}",
                where="seeds and budget",
                why=f"at most {limits.CLIMB_EVALUATIONS:,} are run",
                fix="lower one of them",
            )

    @property
    def sha256(self) -> str:
        """Of the settings as JSON with sorted names."""
        return hashlib.sha256(to_json(dict(sorted(asdict(self).items()))).encode()).hexdigest()

    def command(self, out: str = "results") -> str:
        """The command line that gives the same report; settings at their default are left out."""
        words = ["python -m refusal_core.cli run"]
        for name, value in asdict(self).items():
            if name in _ALWAYS_SHOWN or value != getattr(Settings, name):
                words.append(f"--{name.replace('_', '-')} {value}")
        return " ".join([*words, f"--out {out}"])


WHOLE = {
    "seeds": (1, limits.CLIMB_SEEDS),
    "budget": (1, limits.CLIMB_BUDGET),
    "fanout": (1, limits.CLIMB_FANOUT),
    "length": (1, limits.CLIMB_LENGTH),
    "vocabulary": (2, limits.CLIMB_VOCABULARY),
    "policy_seed": (0, 2**32 - 1),
}
REAL = ("interactions", "noise")
_ALWAYS_SHOWN = ("seeds", "budget", "fanout")


def _whole(name: str, value: int, low: int, high: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{value!r} is no whole number", where=_shown(name)) from None
    if not low <= number <= high:
        raise InputError(f"{number:,} is out of range", where=_shown(name), why=f"it goes from {low:,} to {high:,}")
    return number


def _real(name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{value!r} is no number", where=_shown(name)) from None
    if not (math.isfinite(number) and 0 <= number <= limits.CLIMB_SCALE):
        raise InputError(
            f"{number:g} is out of range", where=_shown(name), why=f"it goes from 0 to {limits.CLIMB_SCALE}"
        )
    return number + 0.0  # -0.0 becomes 0.0: one hash for one configuration


def _shown(name: str) -> str:
    return name.replace("_", "-")
