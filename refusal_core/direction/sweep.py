"""The sweep over layers: how the held-out score moves with the layer, and what the choice of the best one costs.

The best of many layers looks better than it is. The same shuffles are scored at every layer, and each layer's score is
compared with the best that a shuffle reaches at any layer (maxT), so the p-value of the best layer pays for the choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from refusal_core.activations.layers import Layers
from refusal_core.activations.npz import check_pair, check_train
from refusal_core.direction import plan
from refusal_core.direction.category_nulls import labelings, movable, shuffled_categories
from refusal_core.direction.describe import describe_input, split_name
from refusal_core.direction.fit import Direction, fit, margins
from refusal_core.direction.intervals import NotAvailable, category_interval
from refusal_core.direction.left_out import left_out_scores
from refusal_core.direction.nulls import fitted, scores_of, shuffled_labels
from refusal_core.direction.result import Settings, random_streams
from refusal_core.direction.rows import Rows, rows_of
from refusal_core.direction.scores import auroc, balanced_accuracy, correct_cells
from refusal_core.direction.splits import out_of_fold
from refusal_core.direction.study import limited
from refusal_core.direction.sweep_result import (
    CATEGORIES,
    ROWS,
    Chosen,
    LayerNull,
    LayerScore,
    Maximum,
    Sweep,
    headline,
    warnings,
)
from refusal_core.errors import InputError
from refusal_core.jobs import Job


@dataclass(frozen=True, eq=False)
class _Draws:
    """Scores of the shuffles at one layer, float64 [m] by null, or why there are none."""

    scores: dict[str, np.ndarray | NotAvailable]
    listed: bool


def sweep(
    train: Layers,
    test: Layers | None,
    settings: Settings | None = None,
    layers: list[int] | None = None,
    job: Job | None = None,
) -> Sweep:
    """The held-out score at each layer; with `test` None on categories left out one by one of `train`.

    `layers` are places, all when not given. One layer is in memory at a time. maxT after Westfall and Young (1993),
    "Resampling-based multiple testing"; balanced accuracy has one scale at every layer, so nothing is studentised.
    Raises InputError for what `check_pair` refuses, for files of other layers, for a place that is not there, when no
    layer has a direction, and for a test file of one class; Cancelled when the job is.
    """
    settings, job = settings or Settings(), job or Job()
    places = _places(train, test, layers)
    check_train(train.first)
    notes = check_pair(train.first, test.first) if test is not None else ()
    if test is not None and len(set(test.first.labels.tolist())) < 2:
        raise InputError(
            "the test file holds one class",
            where=f'{test.name}, member "labels"',
            why="layers are compared by balanced accuracy",
            fix="add examples of the other class",
        )
    job.start(len(places), "layers")
    scored: list[tuple[LayerScore, _Draws | None]] = []
    with limited(settings.threads):
        for place in places:
            scored.append(_layer(train, test, place, settings, job))
            job.advance()
    return _result(train, test, scored, settings, notes)


def _places(train: Layers, test: Layers | None, layers: list[int] | None) -> list[int]:
    if test is not None and train.names != test.names:
        raise InputError(
            f"its layers are {', '.join(test.names[:6])} ({len(test)}), those of {train.name} are "
            f"{', '.join(train.names[:6])} ({len(train)})",
            where=test.name,
            why="each layer is fitted and scored by itself",
            fix="export both files with the same layers, in the same order",
        )
    places = list(range(len(train))) if layers is None else list(layers)
    for place in places:
        if not 0 <= place < len(train):
            raise InputError(
                f"there is no layer at {place}", where=train.name, why=f"it has {len(train)}", fix="count from 0"
            )
    if not places or len(set(places)) < len(places):
        raise InputError("name each layer once, and at least one", where="layers")
    return places


def _layer(
    train: Layers, test: Layers | None, place: int, settings: Settings, job: Job
) -> tuple[LayerScore, _Draws | None]:
    fitted_on = rows_of(train.export(place))
    scored_on = None if test is None else rows_of(test.export(place))
    name, quiet = train.names[place], Job(cancel=job.cancel)
    try:
        direction = fit(fitted_on, quiet)
    except InputError as problem:
        none = NotAvailable("there is no direction")
        return LayerScore(place, name, None, none, None, None, {}, None, problem.what), None
    streams = random_streams(settings.seed)  # from the start at each layer, so that all see the same shuffles
    left_out = _left_out(fitted_on, quiet)
    if scored_on is None:
        if left_out is None:
            raise InputError(
                "without one of its categories a class is missing",
                where=train.name,
                why="categories are left out one by one when there is no test file",
                fix="give a test file, or more categories of each class",
            )
        correct, counts, ranking = fitted_on.cells(left_out).astype(np.int64), fitted_on.cells(), None
    else:
        margin = margins(scored_on, direction.unit, direction.midpoint, quiet)
        correct, counts = correct_cells(scored_on, margin >= 0), scored_on.cells()
        ranking = auroc(margin, scored_on.labels)
    observed = balanced_accuracy(correct.sum(0), counts.sum(0))
    draws = _draws(fitted_on, scored_on, direction, observed, settings, quiet)
    score = LayerScore(
        place=place,
        layer=name,
        balanced_accuracy=observed,
        interval=category_interval(correct, counts, streams["bootstrap"]),
        auroc=ranking,
        left_out_balanced_accuracy=None
        if left_out is None
        else balanced_accuracy(fitted_on.cells(left_out).sum(0).astype(int), fitted_on.cells().sum(0)),
        nulls={},
        direction_sha256=direction.sha256,
    )
    return score, draws


def _left_out(train: Rows, job: Job) -> np.ndarray | None:
    """bool [n]: which rows are called right by the fit without their category; None when that loses a class."""
    cells = train.cells()
    if (cells.sum(0) - cells == 0).any():
        return None
    return out_of_fold(train, train.code, len(train.categories), job)


def _draws(
    train: Rows, test: Rows | None, direction: Direction, observed: float, settings: Settings, job: Job
) -> _Draws:
    streams, shuffled = random_streams(settings.seed), np.empty(settings.repeats)
    for part in plan.parts(settings.repeats):
        labels = shuffled_labels(train, part.stop - part.start, streams["shuffled labels"])
        if test is None:
            shuffled[part] = left_out_scores(train, direction, labels, job)
        else:
            shuffled[part] = scores_of(test, direction, [fitted(train, direction, labels, job)], job)[0]
    if test is not None:
        null = shuffled_categories(train, test, direction, observed, settings.repeats, streams["categories"], job)
        listed = not isinstance(null, NotAvailable) and null.method == "all labelings listed"
        return _Draws(
            {ROWS: shuffled, CATEGORIES: null if isinstance(null, NotAvailable) else np.array(null.scores)}, listed
        )
    moves = movable(train, train)
    found = (
        moves if isinstance(moves, NotAvailable) else labelings(moves, train, settings.repeats, streams["categories"])
    )
    if isinstance(found, NotAvailable):
        return _Draws({ROWS: shuffled, CATEGORIES: found}, False)
    labels, listed, _ = found
    scores = np.empty(len(labels))
    for part in plan.parts(len(labels)):
        scores[part] = left_out_scores(train, direction, labels[part][:, train.code], job)
    if listed:
        scores[(labels == moves.label).all(1)] = observed
    return _Draws({ROWS: shuffled, CATEGORIES: scores}, listed)


def _result(
    train: Layers, test: Layers | None, scored: list[tuple[LayerScore, _Draws | None]], settings: Settings, notes: tuple
) -> Sweep:
    every = [draws for _, draws in scored if draws is not None]
    if not every:
        raise InputError(
            scored[0][0].problem, where=train.name, why="no layer has a direction", fix="check labels and activations"
        )
    highest = {name: _highest(name, every) for name in (ROWS, CATEGORIES)}
    layers = tuple(
        score if draws is None else replace(score, nulls=_nulls(score, draws, highest)) for score, draws in scored
    )
    maxima = {name: _maximum(found, name == CATEGORIES and every[0].listed) for name, found in highest.items()}
    best = max(range(len(layers)), key=lambda k: (layers[k].balanced_accuracy or -1.0, -k))
    seen = frozenset(train.first.categories)
    shared = () if test is None else tuple(sorted(seen & set(test.first.categories)))
    split = "one pooled file, categories left out" if test is None else split_name(shared, rows_of(test.first))
    held_out = test is not None and not shared
    null = ROWS if held_out or isinstance(highest[CATEGORIES], NotAvailable) else CATEGORIES
    chosen = _chosen(layers, test)
    return Sweep(
        headline=headline(layers, best, null, split, chosen, (test or train).first.n),
        inputs={"train": _described(train), "test": None if test is None else _described(test)},
        split=split,
        seen_categories=shared,
        layers=layers,
        best=best,
        chosen_on_train=chosen,
        null=null,
        maxima=maxima,
        seed=settings.seed,
        repeats=settings.repeats,
        warnings=(*train.first.notes, *(test.first.notes if test else ()), *notes, *warnings(layers, split, maxima)),
    )


def _highest(name: str, every: list[_Draws]) -> np.ndarray | NotAvailable:
    """The best score of all layers in each shuffle. Whether there are shuffles is the same at every layer."""
    first = every[0].scores[name]
    return first if isinstance(first, NotAvailable) else np.max([draws.scores[name] for draws in every], axis=0)


def _nulls(score: LayerScore, draws: _Draws, highest: dict) -> dict[str, LayerNull | NotAvailable]:
    found = {}
    for name, own in draws.scores.items():
        if isinstance(own, NotAvailable):
            found[name] = own
            continue
        extra = 0 if name == CATEGORIES and draws.listed else 1  # a list holds the true labeling already
        p, adjusted = (
            (np.count_nonzero(values >= score.balanced_accuracy) + extra) / (len(values) + extra)
            for values in (own, highest[name])
        )
        low, median, high = np.quantile(own, [0.025, 0.5, 0.975])
        found[name] = LayerNull(float(low), float(median), float(high), float(p), float(adjusted))
    return found


def _maximum(highest: np.ndarray | NotAvailable, listed: bool) -> Maximum | NotAvailable:
    if isinstance(highest, NotAvailable):
        return highest
    median, high = np.quantile(highest, [0.5, 0.95])
    return Maximum(float(median), float(high), len(highest), 1 / (len(highest) + (not listed)))


def _chosen(layers: tuple[LayerScore, ...], test: Layers | None) -> Chosen | NotAvailable:
    if test is None:
        return NotAvailable("one pooled file was given, so the scores are of categories left out already")
    known = [layer for layer in layers if layer.left_out_balanced_accuracy is not None]
    if not known:
        return NotAvailable("without one of the training categories a class is missing")
    top = max(known, key=lambda layer: (layer.left_out_balanced_accuracy, -layer.place))
    return Chosen(top.place, top.layer, top.left_out_balanced_accuracy, top.balanced_accuracy, top.interval)


def _described(layers: Layers) -> dict:
    one = describe_input(layers.first, rows_of(layers.first))
    return {**one, "sha256": list(layers.sha256), "layers": list(layers.names), "layer_index": None}
