"""A column of the suite: what it has to say about which rows, from a file or from a checkpoint that is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError, one_line
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job
from refusal_core.runs.predictions import Predictions
from refusal_core.scorecard.cache import Answer, AnswerCache, text_digest
from refusal_core.scorecard.correction import Validation
from refusal_core.scorecard.files import Files
from refusal_core.scorecard.predicted import of_predictions, predicted
from refusal_core.scorecard.readers import Load, Reader
from refusal_core.scorecard.resolver import STARTER
from refusal_core.scorecard.suite import Checkpoint, Dataset, Suite
from refusal_core.scorecard.table import UNKNOWN, NoData, NotComputed, Table, clusters, places, spread
from refusal_core.scorecard.validated import validation_of, validation_rows

Rows = Sequence[Exchange | BadRow]


@dataclass(frozen=True)
class Selection:
    """Which rows: those of a dataset, or of a split; `variant` of which perturbation, "" for none."""

    dataset: str | None = None
    split: str | None = None
    variant: str = ""


class Column:
    """One checkpoint of the suite. `open` first, then `want` what it shall answer, `classify`, and ask for tables."""

    def __init__(self, spec: Checkpoint, suite: Suite, files: Files, cache: AnswerCache, load: Load) -> None:
        self.spec, self.suite, self.files = spec, suite, files
        self.labels = tuple(suite.labels)
        self.digest: str | None = None
        self.notes: list[str] = []
        self.predictions: Predictions | None = None
        self.reader: Reader | None = None
        self._cache, self._load = cache, load
        self._responses: Rows = ()
        self._wanted: dict[bytes, Exchange] = {}
        self._answers: dict[bytes, Answer] = {}
        self._tables: dict[object, Any] = {}
        self._asked: set[object] = set()

    def open(self) -> None:
        """Read what the column consists of. Raises InputError, and WorkError as loading a checkpoint does."""
        spec = self.spec
        if spec.predictions is not None:
            self.predictions = self.files.predictions(spec.predictions)
            self.digest = self.files.digests[spec.predictions]
        if spec.responses is not None:
            self._responses = self.files.exchanges(spec.responses, columns_of(spec))
            self.digest = self.files.digests[spec.responses]
        name = spec.path if spec.kind == "checkpoint" else (None if spec.label_field else spec.classifier or STARTER)
        if name is not None:
            self.reader = Reader(self.files.resolver.checkpoint(name), self._cache, self._load)
            self.notes += self.reader.notes
            self._check_labels(self.reader.labels)
            self.digest = self.reader.digest if spec.kind == "checkpoint" else self.digest
        if spec.kind == "responses":
            self.want(self._responses)
            self.want(validation_rows(self))

    def want(self, rows: Iterable[Exchange | BadRow]) -> None:
        """Have the checkpoint answer `rows` when it is run."""
        if self.reader is not None:
            self._wanted |= {text_digest(row): row for row in rows if isinstance(row, Exchange)}

    def want_once(self, key: object, rows: Callable[[], Iterable[Exchange | BadRow]]) -> None:
        """`want` what `rows` gives, unless it was wanted under the same key."""
        if key not in self._asked:
            self._asked.add(key)
            self.want(rows())

    def look_up(self) -> int:
        """Take what the cache knows; returns how many exchanges are left to classify."""
        if self.reader is None:
            return 0
        found, self._wanted = self.reader.missing(self._wanted)
        self._answers |= found
        return len(self._wanted)

    def classify(self, job: Job) -> None:
        """Answer what is left. Raises Cancelled; what was done by then is in the cache."""
        if self.reader is not None and self._wanted:
            self._answers |= self.reader.classify(self._wanted, job)
            self._wanted = {}
        if self.reader is not None:
            self.reader.release()

    def table(self, selection: Selection) -> Table:
        """The rows of `selection`. Raises NoData, NotComputed, InputError."""
        if selection not in self._tables:
            self._tables[selection] = self._table(selection)
        return self._tables[selection]

    def cases(self, rows: Rows) -> Table:
        """Behavioural cases, answered by the checkpoint, or looked up by id in its predictions."""
        if self.spec.kind == "responses":
            raise NoData("cases ask a classifier, and this column is answers of a language model")
        return self.answered(rows) if self.reader is not None else self.by_id(rows)

    def validation(self) -> Validation | None:
        """How the classifier of the responses errs; None where the column does not say."""
        if "validation" not in self._tables:
            self._tables["validation"] = validation_of(self)
        return self._tables["validation"]

    def dataset_rows(self, dataset: Dataset) -> Rows:
        """The exchanges of a dataset's file. Raises InputError for one that cannot be read."""
        rows = self.files.exchanges(dataset.path, columns_of(dataset))
        if bad := [row for row in rows if isinstance(row, BadRow)]:
            raise InputError(f"line {bad[0].line}: {bad[0].error}", where=dataset.path)
        return rows

    def variants(self, split: str | None) -> list[str]:
        """The perturbations that the predictions file holds, of a split (None for any)."""
        if self.predictions is None:
            return []
        pairs = zip(self.predictions.splits, self.predictions.variants, strict=True)
        return list(dict.fromkeys(variant for s, variant in pairs if variant and (split is None or s == split)))

    def runs(self, selection: Selection, variant: str = "") -> bool:
        """Whether the checkpoint is run on the rows of a selection: it has a path, and no file answers for it."""
        dataset = self.suite.dataset(selection.dataset) if selection.dataset is not None else None
        if self.spec.kind == "responses" or self.reader is None or dataset is None or dataset.path is None:
            return False
        return self.predictions is None or (variant != "" and variant not in self.variants(selection.split))

    def _table(self, selection: Selection) -> Table:
        if self.spec.kind == "responses":
            if selection.dataset is not None:
                raise NoData("a dataset is of classifier checkpoints, and this column is answers of a language model")
            return self._of_responses()
        dataset = self.suite.dataset(selection.dataset) if selection.dataset is not None else None
        split = selection.split if selection.split is not None else dataset and dataset.split
        if self.predictions is not None:
            return of_predictions(self, dataset, split, selection.variant)
        if dataset is None or dataset.path is None:
            what = (
                f'the dataset "{dataset.id}" is a split of predictions'
                if dataset
                else "no dataset with a path is named"
            )
            raise NotComputed(f"{what}, and the checkpoint has no predictions file")
        if selection.variant:
            raise ValueError("variants of a checkpoint that is run are made by the caller")
        return self._of_dataset(dataset)

    def _of_dataset(self, dataset: Dataset) -> Table:
        rows = self.dataset_rows(dataset)
        table = self.answered(rows)
        return replace(
            table,
            true=self.true_of([row.label for row in rows], table.ids, dataset.path),
            groups=clusters(rows, dataset.cluster_field),
            sliceable=frozenset(dataset.slice_fields),
        )

    def _of_responses(self) -> Table:
        rows = self._responses
        if not rows:
            raise NoData("the file of responses is empty")
        table = self.answered(rows) if self.reader is not None else self._labelled(rows)
        if len(set(table.ids)) < len(table.ids):
            twice = next(i for i in table.ids if table.ids.count(i) > 1)
            raise NotComputed(f'the id "{twice}" comes twice in {self.spec.responses}; give each answer its own')
        return replace(table, groups=clusters(rows, self.spec.cluster_field))

    def _labelled(self, rows: Rows) -> Table:
        """Responses that carry their label."""
        names = [row.label if isinstance(row, Exchange) else None for row in rows]
        predicted = places(names, self.labels, self.suite.label_aliases)
        problems = {}
        for i in np.flatnonzero(predicted < 0).tolist():
            row, name = rows[i], names[i]
            known = f'{UNKNOWN}"{one_line(name, 80)}" is no class of the suite' if name else "it has no label"
            problems[i] = row.error if isinstance(row, BadRow) else known
        return self._of_rows(rows, predicted, None, problems)

    def answered(self, rows: Rows) -> Table:
        """Exchanges with the answers of the checkpoint; all of them were wanted before."""
        answers = [self._answers[text_digest(row)] if isinstance(row, Exchange) else None for row in rows]
        own = self.reader.labels
        predicted = places([a and a.label for a in answers], self.labels, self.suite.label_aliases)
        given = np.full((len(rows), len(own)), np.nan)
        problems = {}
        for i, (row, answer) in enumerate(zip(rows, answers, strict=True)):
            if answer is not None and answer.probabilities is not None:
                given[i] = answer.probabilities
            elif predicted[i] < 0:
                problems[i] = row.error if isinstance(row, BadRow) else answer.error or "it could not be classified"
        return self._of_rows(rows, predicted, spread(given, own, self.labels, self.suite.label_aliases), problems)

    def _of_rows(
        self, rows: Rows, predicted: NDArray, probabilities: NDArray | None, problems: Mapping[int, str]
    ) -> Table:
        return Table(
            labels=self.labels,
            ids=tuple(str(row.id if row.id is not None else row.line or i) for i, row in enumerate(rows, start=1)),
            predicted=predicted,
            true=np.full(len(rows), -1, dtype=np.int64),
            probabilities=probabilities,
            groups=(None,) * len(rows),
            fields=tuple(self.fields_of(row) for row in rows),
            exchanges=tuple(row if isinstance(row, Exchange) else None for row in rows),
            problems=problems,
        )

    def by_id(self, rows: Rows) -> Table:
        """The rows of the predictions file that have the ids of `rows`. Raises NotComputed for an id that it lacks."""
        if self.predictions is None:
            raise NotComputed("ids name rows of a predictions file, and the checkpoint has none")
        found = self.predictions
        at: dict[str, list[int]] = {}
        for row, (i, variant) in enumerate(zip(found.ids, found.variants, strict=True)):
            if not variant:
                at.setdefault(i, []).append(row)
        wanted, kept = [], []
        for row in rows:
            here = at.get(str(row.id), []) if row.id is not None else []
            if not here:
                raise NotComputed(
                    f'the case "{one_line(str(row.id), 80)}" has no prediction in {found.file}, '
                    "and the checkpoint has no path to run it"
                )
            wanted += here
            kept += [row] * len(here)
        table = predicted(self, np.array(wanted, dtype=np.int64))
        fields = tuple({**a, **self.fields_of(row)} for a, row in zip(table.fields, kept, strict=True))
        exchanges = tuple(row if isinstance(row, Exchange) else None for row in kept)
        return replace(table, fields=fields, exchanges=exchanges)

    def fields_of(self, row: Exchange | BadRow) -> Mapping[str, object]:
        if isinstance(row, BadRow):
            return {}
        return {**row.extra, "label": row.label, "true": row.label} if row.label is not None else row.extra

    def true_of(self, names: Sequence[str | None], ids: Sequence[str], where: str | None) -> NDArray[np.int64]:
        true = places(names, self.labels, self.suite.label_aliases)
        for i in np.flatnonzero(true < 0).tolist():
            if names[i] is not None:
                what = f'the true class "{one_line(names[i], 80)}" of row "{ids[i]}" is no class of the suite'
                raise NotComputed(f"{what} ({where}); name it in labels or label_aliases")
        return true

    def _check_labels(self, own: Sequence[str]) -> None:
        known = places(own, self.labels, self.suite.label_aliases)
        if strange := [label for label, place in zip(own, known, strict=True) if place < 0]:
            raise InputError(
                f'its class "{one_line(strange[0], 80)}" is none of the suite',
                where=self.spec.id,
                fix="name it in labels or in label_aliases",
            )


def columns_of(part: Checkpoint | Dataset) -> dict[str, str]:
    """The `columns` of read_exchanges, without those that are called as ours."""
    given = {"id": part.id_field, "prompt": part.prompt_field, "response": part.response_field}
    given["label"] = part.label_field
    return {ours: theirs for ours, theirs in given.items() if theirs is not None and theirs != ours}
