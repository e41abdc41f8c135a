"""One pooled file: nothing is held out but by the comparison of splits."""

from __future__ import annotations

import numpy as np

from refusal_core.activations.npz import Export, check_train
from refusal_core.direction import findings, plan
from refusal_core.direction.describe import describe, describe_input
from refusal_core.direction.fit import fit
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.result import Settings, Study, random_streams
from refusal_core.direction.rows import rows_of
from refusal_core.direction.splits import compare_splits
from refusal_core.jobs import Job

_REASON = NotAvailable("one pooled file was given, so there is no test file")


def one_file(export: Export, settings: Settings, job: Job) -> Study:
    """The comparison of splits on one file; every section that needs a test file says so."""
    check_train(export)
    extraction, differing = describe(settings.described(), export, None)
    rows = rows_of(export)
    job.start(plan.blocks_of_one_file(rows, settings.split_repeats), "blocks")
    direction = fit(rows, job)
    comparison = compare_splits(rows, random_streams(settings.seed)["splits"], settings.split_repeats, job)
    return Study(
        headline=findings.one_file_headline(comparison),
        inputs={"train": describe_input(export, rows), "test": None},
        extraction=extraction,
        seen_categories=(),
        split="one pooled file",
        direction={"norm": direction.norm, "threshold": direction.threshold, "sha256": direction.sha256},
        test=_REASON,
        macro_average=_REASON,
        threshold_shift=_REASON,
        leave_one_category_out=_REASON,
        baselines={"majority": _REASON, "category_identity": _REASON, "random_directions": _REASON},
        nulls=dict.fromkeys(("shuffled_labels", "shuffled_categories", "within_categories"), _REASON),
        interval=_REASON,
        auroc_interval=_REASON,
        leakage=_REASON,
        geometry=_REASON,
        variants={"scaled": _REASON, "shrunk_covariance": _REASON},
        split_comparison=comparison,
        seed=settings.seed,
        repeats=settings.repeats,
        warnings=(*export.notes, *differing),
        unit=direction.unit,
        projections=np.empty(0),
        margins=np.empty(0),
    )
