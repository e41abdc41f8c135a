"""What a sweep over layers answers: a score a layer, the best of the shuffles, and the sentence about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from refusal_core.direction.intervals import CategoryInterval, NotAvailable
from refusal_core.direction.result import with_versions
from refusal_core.metrics.intervals import digits_for

SCHEMA = "refusal-sweep/1"
ROWS, CATEGORIES = "shuffled labels", "shuffled categories"


@dataclass(frozen=True)
class LayerNull:
    """Shuffles at one layer: their 2.5%, 50% and 97.5% points, the layer's own p-value, and the one that pays for the
    choice of a layer (`adjusted_p_value`, from the best of all layers in each shuffle).
    """

    low: float
    median: float
    high: float
    p_value: float
    adjusted_p_value: float


@dataclass(frozen=True)
class LayerScore:
    """One layer. `place` is its index in the file or the list of files, `layer` its name there.

    `balanced_accuracy` and `auroc` are held out: on the test file, or on categories left out one by one of one pooled
    file (no AUROC there: each category has a direction of its own). `left_out_balanced_accuracy` is of categories left
    out of the training file. `problem` says why a layer has no direction; then there are no numbers.
    """

    place: int
    layer: str
    balanced_accuracy: float | None
    interval: CategoryInterval | NotAvailable
    auroc: float | None
    left_out_balanced_accuracy: float | None
    nulls: dict[str, LayerNull | NotAvailable]
    direction_sha256: str | None
    problem: str | None = None


@dataclass(frozen=True)
class Maximum:
    """The best score of all layers in each shuffle: its 50% and 95% points. A layer above `high` has adjusted p <= 0.05
    or so. `smallest_p_value` is the least that there can be.
    """

    median: float
    high: float
    repeats: int
    smallest_p_value: float


@dataclass(frozen=True)
class Chosen:
    """A layer chosen without a look at the test file, by categories left out of the training file."""

    place: int
    layer: str
    left_out_balanced_accuracy: float
    balanced_accuracy: float
    interval: CategoryInterval | NotAvailable


@dataclass(frozen=True)
class Sweep:
    """The result. `best` is the place in `layers` with the highest balanced accuracy, the first of equals. `null` names
    the shuffles that hold for the split (a key of `maxima` and of each layer's `nulls`); the headline uses those.
    """

    headline: str
    inputs: dict
    split: str
    seen_categories: tuple[str, ...]
    layers: tuple[LayerScore, ...]
    best: int
    chosen_on_train: Chosen | NotAvailable
    null: str
    maxima: dict[str, Maximum | NotAvailable]
    seed: int
    repeats: int
    warnings: tuple[str, ...]

    def to_json(self) -> str:
        """Strict JSON with a line break at its end."""
        return with_versions(SCHEMA, self)


def headline(
    layers: tuple[LayerScore, ...], best: int, null: str, split: str, chosen: Chosen | NotAvailable, n: int
) -> str:
    """The best layer with its interval, what the choice costs, and the layer that training data alone would choose."""
    top = layers[best]
    text = f"Layer {top.layer} is the best of {len(layers)}: balanced accuracy {with_interval(top)}, {split}, n = {n:,}"
    found = top.nulls.get(null)
    if isinstance(found, LayerNull):
        text += f"; p = {found.adjusted_p_value:.2g} when the choice among layers is paid for ({null})"
    if isinstance(chosen, Chosen) and chosen.layer != top.layer:
        text += (
            f". Chosen on the training file alone it would be layer {chosen.layer}, with {chosen.balanced_accuracy:.2f}"
        )
    return f"{text}."


def warnings(layers: tuple[LayerScore, ...], split: str, maxima: dict[str, Maximum | NotAvailable]) -> Iterator[str]:
    """What a reader must be told beside the curve."""
    if len(layers) > 1:
        yield (
            "The interval of the best layer does not pay for its choice: of many layers the highest is too high. Read "
            "the adjusted p-value, or the layer chosen on the training file."
        )
    if split in ("categories shared", "mixed"):
        yield "Categories are in both files: the scores may be knowledge of these categories."
    if isinstance(maxima.get(CATEGORIES), Maximum) and maxima[CATEGORIES].smallest_p_value > 0.05:
        least = maxima[CATEGORIES].smallest_p_value
        yield f"There are so few labelings of whole categories that no p-value can be under {least:.2g}."
    for layer in layers:
        if layer.problem:
            yield f"Layer {layer.layer}: {layer.problem}."


def with_interval(score: LayerScore | Chosen) -> str:
    """For example "0.72 (0.61 to 0.81)"."""
    if not isinstance(score.interval, CategoryInterval):
        return f"{score.balanced_accuracy:.2f}"
    low, high = score.interval.low, score.interval.high
    digits = digits_for(high - low)
    return f"{score.balanced_accuracy:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
