"""What a study is asked and what it answers: its settings, its result, and the random numbers between them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from refusal_core.direction.geometry import Geometry
from refusal_core.direction.intervals import CategoryInterval, LeaveOneOut, NotAvailable
from refusal_core.direction.leakage import Leakage
from refusal_core.direction.meaning import MEANINGS
from refusal_core.direction.scores import MacroAverage, TestScores, ThresholdShift
from refusal_core.direction.splits import REPEATS as SPLIT_REPEATS
from refusal_core.direction.splits import SplitComparison
from refusal_core.errors import InputError
from refusal_core.limits import STUDY_REPEATS
from refusal_core.reports import to_json
from refusal_core.versions import versions

SCHEMA = "refusal-study/1"
_STREAMS = (
    "shuffled labels",
    "random directions",
    "categories",
    "within",
    "bootstrap",
    "leakage",
    "covariance",
    "splits",
    "auroc",  # at the end: its place is its seed, so the draws of the others stay
)
_DRAWN = ("nulls", "interval", "auroc_interval", "split_comparison")  # sections that the held-out analysis lacks


def with_versions(schema: str, result: object) -> str:
    """The fields of a result as strict JSON, with a line break at its end."""
    sections = {"schema": schema, **vars(result), "versions": versions(("refusal-core", "numpy", "scipy"))}
    return to_json(sections, indent=2) + "\n"


@dataclass(frozen=True)
class Settings:
    """`repeats` draws of each null and of random directions (1 to 100,000); `seed` >= 0; `threads` of the matrix
    products: another number may round float32 sums otherwise. `model`, `layer` and `pooling` describe the export,
    `label_means` (a key of MEANINGS; None takes what the file says) its labels.
    """

    repeats: int = 999
    seed: int = 0
    split_repeats: int = SPLIT_REPEATS
    threads: int = 1
    model: str | None = None
    layer: str | None = None
    pooling: str | None = None
    label_means: str | None = None

    def __post_init__(self) -> None:
        for name, least, most in (
            ("repeats", 1, STUDY_REPEATS),
            ("seed", 0, 2**63 - 1),
            ("split_repeats", 1, 1_000),
            ("threads", 1, 1_024),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(
                    f"it is {value:,}",
                    where=f"--{name.replace('_', '-')}",
                    why=f"{least:,} to {most:,} is possible",
                    fix="give another number",
                )

        if self.label_means not in (None, *MEANINGS):
            raise InputError(
                f'it is "{self.label_means}"', where="--label-means", why=f"{' or '.join(MEANINGS)} is possible"
            )

    def described(self) -> dict[str, str | None]:
        """What the user says of the export."""
        return {"model": self.model, "layer": self.layer, "pooling": self.pooling, "label_means": self.label_means}


@dataclass(frozen=True, eq=False)
class Study:
    """The result. Sections that are undefined are a NotAvailable with the reason; `sections` is what is written.

    Beside the sections, for drawing: `unit` [d] the direction, `projections` [n] of the test rows in the file's own
    coordinates, and `margins` [n] above the threshold (both empty when one pooled file was given). A row is called 1
    when its margin is at or above 0: taken from the projections, rounding might say otherwise.
    """

    headline: str
    inputs: dict
    extraction: dict
    seen_categories: tuple[str, ...]
    split: str
    direction: dict
    test: TestScores | NotAvailable
    macro_average: MacroAverage | NotAvailable
    threshold_shift: ThresholdShift | NotAvailable
    leave_one_category_out: LeaveOneOut | NotAvailable
    baselines: dict
    nulls: dict
    interval: CategoryInterval | NotAvailable
    auroc_interval: CategoryInterval | NotAvailable
    leakage: Leakage | NotAvailable
    geometry: Geometry | NotAvailable
    variants: dict | NotAvailable
    split_comparison: SplitComparison | NotAvailable
    seed: int
    repeats: int | None
    warnings: tuple[str, ...]
    unit: np.ndarray = field(repr=False)
    projections: np.ndarray = field(repr=False)
    margins: np.ndarray = field(repr=False)
    held_out_only: bool = False

    def sections(self) -> dict:
        """The contents of study.json; the held-out analysis has no `nulls`, no intervals over categories, no random
        directions and no comparison of splits.
        """
        names = [f.name for f in fields(self) if f.name not in ("unit", "projections", "margins", "held_out_only")]
        if self.held_out_only:
            names = [name for name in names if name not in _DRAWN]
        found = {"schema": SCHEMA, **{name: getattr(self, name) for name in names}}
        return {**found, "versions": versions(("refusal-core", "numpy", "scipy"))}

    def to_json(self) -> str:
        """study.json: strict JSON with a line break at its end."""
        return to_json(self.sections(), indent=2) + "\n"


def random_streams(seed: int) -> dict[str, np.random.Generator]:
    """One generator a use, so that no number depends on which other sections were drawn."""
    seeds = (np.random.SeedSequence(seed, spawn_key=(k,)) for k in range(len(_STREAMS)))
    # SFC64 draws normal numbers 12% faster than the default, and they are a tenth of a small study.
    return {name: np.random.Generator(np.random.SFC64(own)) for name, own in zip(_STREAMS, seeds, strict=True)}
