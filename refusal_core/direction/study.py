"""The study: one function from two exports to one frozen result, whose fields are the sections of study.json."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from refusal_core.activations.npz import Export, check_pair
from refusal_core.direction import findings, plan
from refusal_core.direction.auroc_interval import auroc_interval
from refusal_core.direction.baselines import category_identity, majority
from refusal_core.direction.category_nulls import shuffled_categories
from refusal_core.direction.describe import describe, describe_input, split_name
from refusal_core.direction.fit import Direction, fit, margins
from refusal_core.direction.geometry import geometry, spread
from refusal_core.direction.intervals import (
    NotAvailable,
    category_interval,
    leave_one_category_out,
)
from refusal_core.direction.leakage import leakage
from refusal_core.direction.nulls import (
    Null,
    fitted,
    labelings_within,
    null,
    random_directions,
    scores_of,
    shuffled_labels,
    summary,
    within_categories,
)
from refusal_core.direction.one_file import one_file
from refusal_core.direction.result import Settings, Study, random_streams
from refusal_core.direction.rows import Rows, rows_of
from refusal_core.direction.scores import (
    TestScores,
    correct_cells,
    macro_average,
    score,
    threshold_shift,
)
from refusal_core.direction.splits import compare_splits, pooled
from refusal_core.direction.variants import scaled, shrunk
from refusal_core.jobs import Job

ROW_CLAIM = "labels carry nothing given the rows; it is easy to reject where rows of one category resemble each other"
WITHIN_CLAIM = "given its category, a row's label carries nothing"


def study(train: Export, test: Export | None, settings: Settings | None = None, job: Job | None = None) -> Study:
    """The full study of a train and a test file, or, with `test` None, the comparison of splits on one pooled file.

    Raises InputError for what `activations.npz.check_pair`, `fit` and Settings refuse, Cancelled when the job is.
    """
    settings, job = settings or Settings(), job or Job()
    with limited(settings.threads):
        if test is None:
            return one_file(train, settings, job)
        return _study(train, test, settings, job, held_out_only=False)


def held_out(train: Export, test: Export, settings: Settings | None = None, job: Job | None = None) -> Study:
    """The held-out analysis: the study without nulls, interval, random directions and the comparison of splits."""
    settings = settings or Settings()
    with limited(settings.threads):
        return _study(train, test, settings, job or Job(), held_out_only=True)


def _study(train: Export, test: Export, settings: Settings, job: Job, held_out_only: bool) -> Study:
    notes = [*train.notes, *test.notes, *check_pair(train, test)]
    extraction, differing = describe(settings.described(), train, test)
    fitted_on, scored_on = rows_of(train), rows_of(test)
    job.start(plan.blocks_of(fitted_on, scored_on, settings, held_out_only), "blocks")
    streams = random_streams(settings.seed)

    direction = fit(fitted_on, job)
    margin = margins(scored_on, direction.unit, direction.midpoint, job)
    seen = frozenset(fitted_on.categories)
    shared = tuple(name for name in scored_on.categories if name in seen)
    scores = score(scored_on, margin, seen)
    correct, counts = correct_cells(scored_on, margin >= 0), scored_on.cells()
    variances = spread(fitted_on, direction, job)
    baselines = {
        "majority": majority(fitted_on, scored_on),
        "category_identity": category_identity(fitted_on, scored_on),
    }
    skipped = NotAvailable("the held-out analysis does not draw")
    nulls, interval, ranking, comparison = {}, skipped, skipped, skipped
    if not held_out_only:
        baselines["random_directions"], nulls = _drawn(fitted_on, scored_on, direction, scores, settings, streams, job)
        interval = category_interval(correct, counts, streams["bootstrap"])
        ranking = auroc_interval(scored_on, margin, streams["auroc"])
        comparison = NotAvailable("no category is in both files, so every score is on categories left out")
        if shared:
            comparison = compare_splits(pooled(fitted_on, scored_on), streams["splits"], settings.split_repeats, job)
    result = {
        "inputs": {"train": describe_input(train, fitted_on), "test": describe_input(test, scored_on)},
        "extraction": extraction,
        "seen_categories": shared,
        "split": split_name(shared, scored_on),
        "direction": {"norm": direction.norm, "threshold": direction.threshold, "sha256": direction.sha256},
        "test": scores,
        "macro_average": macro_average(scored_on.categories, correct, counts),
        "threshold_shift": threshold_shift(margin, scored_on.labels),
        "leave_one_category_out": leave_one_category_out(scored_on.categories, correct, counts),
        "baselines": baselines,
        "nulls": nulls,
        "interval": interval,
        "auroc_interval": ranking,
        "leakage": leakage(fitted_on, scored_on, margin, streams["leakage"], job),
        "geometry": geometry(fitted_on, scored_on, direction, margin, variances),
        "variants": {
            "scaled": _or_reason(scaled(scored_on, direction, variances, job)),
            "shrunk_covariance": _or_reason(
                shrunk(fitted_on, scored_on, direction, variances, streams["covariance"], job)
            ),
        },
        "split_comparison": comparison,
    }
    warnings = (*notes, *differing, *findings.warnings(train, test, result))
    return Study(
        headline=findings.headline(result),
        **result,
        seed=settings.seed,
        repeats=None if held_out_only else settings.repeats,
        warnings=warnings,
        unit=direction.unit,
        projections=margin + direction.threshold,
        margins=margin,
        held_out_only=held_out_only,
    )


def _drawn(
    train: Rows, test: Rows, direction: Direction, scores: TestScores, settings: Settings, streams: dict, job: Job
) -> tuple[object, dict[str, Null | NotAvailable]]:
    """Random directions and the three nulls, or the reason why there are none."""
    observed, repeats = scores.balanced_accuracy, settings.repeats
    if observed is None:
        reason = NotAvailable("the test file holds one class, so balanced accuracy is undefined")
        return reason, dict.fromkeys(("shuffled_labels", "shuffled_categories", "within_categories"), reason)
    shuffled, random = np.empty(repeats), np.empty(repeats)
    for part in plan.parts(repeats):
        sets = [
            fitted(train, direction, shuffled_labels(train, part.stop - part.start, streams["shuffled labels"]), job),
            random_directions(train, direction, part.stop - part.start, streams["random directions"]),
        ]
        shuffled[part], random[part] = scores_of(test, direction, sets, job)
        del sets  # the next ones need the room
    nulls = {"shuffled_labels": null(shuffled, observed, claim=ROW_CLAIM, labelings=None)}
    nulls["shuffled_categories"] = shuffled_categories(
        train, test, direction, observed, repeats, streams["categories"], job
    )
    nulls["within_categories"] = _within(train, test, direction, observed, repeats, streams["within"], job)
    return summary(random), nulls


def _within(
    train: Rows, test: Rows, direction: Direction, observed: float, repeats: int, rng: np.random.Generator, job: Job
) -> Null | NotAvailable:
    scores = np.empty(repeats)
    for part in plan.parts(repeats):
        labels = within_categories(train, part.stop - part.start, rng)
        if isinstance(labels, NotAvailable):
            return labels
        scores[part] = scores_of(test, direction, [fitted(train, direction, labels, job)], job)[0]
    return null(scores, observed, claim=WITHIN_CLAIM, labelings=labelings_within(train))


@contextlib.contextmanager
def limited(threads: int) -> Iterator[None]:
    """BLAS at `threads` while it runs: small matrix-vector work is many times slower on busy cores with more."""
    with threadpool_limits(limits=threads, user_api="blas"):
        yield


def _or_reason(value: object) -> object:
    return NotAvailable("no dimension varies within the classes") if value is None else value
