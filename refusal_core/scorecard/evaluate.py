"""Run a suite: open every checkpoint, classify each exchange once, judge every row, and conclude."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial

from refusal_core.classifier.predict import load as load_classifier
from refusal_core.errors import Cancelled, InputError, RefusalCoreError
from refusal_core.jobs import Job
from refusal_core.limits import SCORECARD_RESAMPLES, SUITE_ROWS
from refusal_core.perturb import PERTURBATIONS
from refusal_core.scorecard import behaviour, changes, quality, rates, training
from refusal_core.scorecard.assertions import Assertion
from refusal_core.scorecard.cache import AnswerCache
from refusal_core.scorecard.cell import Cell, Finding, selection_of
from refusal_core.scorecard.columns import Column
from refusal_core.scorecard.family import correct_family
from refusal_core.scorecard.files import Files
from refusal_core.scorecard.readers import Load
from refusal_core.scorecard.resolver import Resolver
from refusal_core.scorecard.result import FAILED, ColumnResult, Row, Scorecard, conclude, count
from refusal_core.scorecard.rows import failed_row, finished_row
from refusal_core.scorecard.suite import Suite, SuiteFile, Test
from refusal_core.scorecard.table import NoData, NotComputed
from refusal_core.scorecard.unfold import Line, chosen, lines, names_of

COMPUTE: Mapping[str, Callable[[Cell], Finding]] = {
    "metric": quality.metric,
    "no-regression": quality.no_regression,
    "confusion": quality.confusion,
    "support": quality.support,
    "rate": rates.rate,
    "equals": behaviour.equals,
    "label-in": behaviour.label_in,
    "is-refusal": behaviour.is_refusal,
    "probability": behaviour.probability,
    "invariance": changes.invariance,
    "directional": changes.directional,
    "training": training.training,
}
NO_FAMILY_P = 4  # resamples must be so many times what the smallest p of a Holm family needs


@dataclass(frozen=True)
class Choice:
    """Which part of a suite is run. `checkpoints` and `only` are patterns with * and ?; None is all."""

    checkpoints: str | None = None
    baseline: str | None = None
    only: str | None = None
    fail_code: int = FAILED


def run(
    file: SuiteFile,
    resolver: Resolver,
    job: Job | None = None,
    *,
    choice: Choice = Choice(),  # noqa: B008
    cache: AnswerCache | None = None,
    load: Load = load_classifier,
) -> Scorecard:
    """The scorecard of a suite. Progress in "exchanges" while classifying, then in "rows".

    A checkpoint that cannot be loaded becomes a column of errors; an assertion that cannot be computed a row that says
    why. Raises InputError for a `choice` that names nothing, Cancelled when `job` is cancelled: what was classified by
    then is in the cache (None: the one on disk).
    """
    job = job or Job()
    own = AnswerCache.default() if cache is None else None
    try:
        return _Run(file, resolver, job, choice, cache or own, load).scorecard()
    finally:
        if own is not None:
            own.close()


@dataclass
class _Run:
    file: SuiteFile
    resolver: Resolver
    job: Job
    choice: Choice
    cache: AnswerCache
    load: Load
    columns: list[Column] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.suite: Suite = self.file.suite
        self.files = Files(self.resolver)
        self.memo: dict = {}

    def scorecard(self) -> Scorecard:
        self._open_columns()
        self._classify()
        found = self._rows()
        columns = self.shown
        conclusion = conclude(
            found,
            {column.spec.id: column.spec.gate for column in columns},
            # The baseline is what others are compared with, and a filter leaves out what its user does not want.
            may_be_empty=[c.spec.id for c in columns if self.choice.only or c.spec.id == self.baseline_id],
            on_inconclusive=self.suite.defaults.on_inconclusive,
            fail_code=self.choice.fail_code,
        )
        return Scorecard(
            suite=self.file.name,
            suite_sha256=self.file.sha256,
            description=self.suite.description,
            data_sha256=self._data_digest(),
            checkpoints=tuple(self._column_result(column, conclusion.verdicts, found) for column in columns),
            baseline=self.baseline_id,
            rows=tuple(found),
            counts=conclusion.counts,
            exit_code=conclusion.exit_code,
            sentence=conclusion.sentence,
            settings=self._settings(),
            notes=(self.cache.note,) if self.cache.note else (),
        )

    @property
    def baseline_id(self) -> str | None:
        return self.choice.baseline if self.choice.baseline is not None else self.suite.baseline

    @property
    def shown(self) -> list[Column]:
        """The columns that were asked for; the baseline is opened besides."""
        pattern = self.choice.checkpoints
        return [column for column in self.columns if pattern is None or fnmatchcase(column.spec.id, pattern)]

    def _open_columns(self) -> None:
        ids = [spec.id for spec in self.suite.checkpoints]
        _check_choice(self.choice, ids)
        for spec in self.suite.checkpoints:
            asked = self.choice.checkpoints is None or fnmatchcase(spec.id, self.choice.checkpoints)
            if not asked and spec.id != self.baseline_id:
                continue
            column = Column(spec, self.suite, self.files, self.cache, self.load)
            self.columns.append(column)
            self._guarded(column, column.open)
            self.job.check()

    def _classify(self) -> None:
        """Everything that any row asks of a checkpoint, once."""
        for test in self.suite.tests:
            for assertion, name in zip(test.asserts, names_of(test), strict=True):
                if chosen(test.id, name, self.choice.only):
                    for column in self._opened():
                        _want(column, self._bare(column, test, assertion))
        left = {column.spec.id: column.look_up() for column in self._opened()}
        self.job.start(sum(left.values()), "exchanges")
        for column in self._opened():
            self._guarded(column, lambda column=column: column.classify(self.job))

    def _rows(self) -> list[Row]:
        make = {column.spec.id: self._bare(column) for column in self._opened()}
        found_lines = list(lines(self.suite, self.columns, make))
        total = len(found_lines) * len(self.shown)
        if total > SUITE_ROWS:
            raise InputError(
                f"it unfolds into {total:,} rows", where=self.file.name, why=f"at most {SUITE_ROWS:,} are evaluated"
            )
        self.job.start(total, "rows")
        family = sum(1 for line in found_lines if line.assertion.kind == "no-regression")
        columns = [self._column_rows(column, found_lines, self._resamples(family)) for column in self.shown]
        return [row for same_line in zip(*columns, strict=True) for row in same_line]

    def _column_rows(self, column: Column, found_lines: Sequence[Line], resamples: int) -> list[Row]:
        results: list[Row | Finding] = []
        cells = []
        for line in found_lines:
            cell = replace(
                self._bare(column, line.test, line.assertion),
                label=line.label,
                slice=line.slice or {},
                perturbation=line.perturbation,
                resamples=resamples if line.assertion.kind == "no-regression" else self.suite.defaults.ci.n_resamples,
            )
            cells.append(cell)
            results.append(self._result(column, line, cell))
            self.job.advance()
        if self.suite.defaults.correction == "holm" and self.suite.defaults.verdict == "interval":
            results = correct_family(results, self.suite.defaults.confidence)
        return [
            result if isinstance(result, Row) else finished_row(line, cell, result)
            for line, cell, result in zip(found_lines, cells, results, strict=True)
        ]

    def _result(self, column: Column, line: Line, cell: Cell) -> Row | Finding:
        if not chosen(line.test.id, line.name, self.choice.only):
            return failed_row(line, cell, "not run", "filtered out")
        if column.spec.id in self.errors:
            return failed_row(line, cell, "error", f"the checkpoint could not be loaded: {self.errors[column.spec.id]}")
        try:
            return COMPUTE[line.assertion.kind](cell)
        except NoData as why:
            return failed_row(line, cell, "not run", str(why))
        except (NotComputed, InputError) as why:
            return failed_row(line, cell, "error", str(why))

    def _bare(self, column: Column, test: Test | None = None, assertion: Assertion | None = None) -> Cell:
        test = test or self.suite.tests[0]
        return Cell(
            self.suite, test, assertion or test.asserts[0], column, self._baseline(), memo=self.memo,
            resamples=self.suite.defaults.ci.n_resamples,
        )  # fmt: skip

    def _baseline(self) -> Column | None:
        return next((column for column in self._opened() if column.spec.id == self.baseline_id), None)

    def _opened(self) -> list[Column]:
        return [column for column in self.columns if column.spec.id not in self.errors]

    def _guarded(self, column: Column, work: Callable[[], None]) -> None:
        """`work`, or the column becomes one of errors."""
        try:
            work()
        except Cancelled:
            raise
        except (RefusalCoreError, NotComputed) as problem:
            self.errors[column.spec.id] = str(problem)

    def _resamples(self, family: int) -> int:
        """Enough that the smallest p of the family can be significant after Holm."""
        asked = self.suite.defaults.ci.n_resamples
        if self.suite.defaults.correction != "holm":
            return asked
        level = (1 - self.suite.defaults.confidence) / 2
        return min(max(asked, math.ceil(NO_FAMILY_P * family / level)), SCORECARD_RESAMPLES)

    def _column_result(self, column: Column, verdicts: Mapping, rows: Iterable[Row]) -> ColumnResult:
        name = column.spec.id
        return ColumnResult(
            id=name,
            kind=column.spec.kind,
            digest=column.digest,
            verdict=verdicts[name],
            counts=count([row for row in rows if row.checkpoint == name]),
            gate=column.spec.gate,
            error=self.errors.get(name),
            notes=tuple(column.notes),
        )

    def _data_digest(self) -> str:
        listed = sorted(self.files.digests.items())
        return hashlib.sha256("".join(f"{name} {digest}\n" for name, digest in listed).encode()).hexdigest()

    def _settings(self) -> dict:
        defaults = self.suite.defaults
        return {
            "confidence": defaults.confidence, "verdict": defaults.verdict, "n_resamples": defaults.ci.n_resamples,
            "seed": defaults.ci.seed, "zero_division": defaults.zero_division, "min_support": defaults.min_support,
            "on_inconclusive": defaults.on_inconclusive, "correction": defaults.correction,
        }  # fmt: skip


def _check_choice(choice: Choice, ids: Sequence[str]) -> None:
    listed = ", ".join(ids)
    if choice.baseline is not None and choice.baseline not in ids:
        raise InputError(f'there is no checkpoint "{choice.baseline}"', where="baseline", why=f"they are: {listed}")
    if choice.checkpoints is not None and not any(fnmatchcase(name, choice.checkpoints) for name in ids):
        raise InputError(
            f'no checkpoint is called "{choice.checkpoints}"', where="checkpoints", why=f"they are: {listed}"
        )


def _want(column: Column, cell: Cell) -> None:
    """Have the column answer what the assertion will ask. A file that cannot be read is said by the row."""
    if column.reader is None or column.spec.kind == "responses":
        return
    try:
        assertion = cell.assertion
        if (pairs := getattr(assertion, "pairs", None)) is not None:
            column.want_once(("pairs", pairs), lambda: changes.pair_rows(column.files.pairs(pairs)))
            return
        if hasattr(assertion, "min_pass_rate") and behaviour.has_cases(cell.test):
            column.want_once(("cases", cell.test.id), lambda: behaviour.case_rows(cell))
            return
        selection = selection_of(cell.suite, cell.test, assertion)
        dataset = cell.suite.dataset(selection.dataset) if selection.dataset is not None else None
        if assertion.kind == "training" or dataset is None or dataset.path is None:
            return
        if column.runs(selection):
            column.want_once(dataset.id, lambda: column.dataset_rows(dataset))
        if (wanted := getattr(assertion, "perturbation", None)) is not None:
            names = PERTURBATIONS if wanted == "*" else [wanted] if isinstance(wanted, str) else wanted
            for name in names:
                if name in PERTURBATIONS and column.runs(selection, name):
                    changed = partial(changes.changed_rows, column.dataset_rows(dataset), name)
                    column.want_once((dataset.id, name), changed)
    except InputError:
        return
