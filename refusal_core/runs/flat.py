"""Flat and nested JSON of numbers: Trainer results, W&B summaries, home-made metrics, a checkpoint's config."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from refusal_core.errors import InputError
from refusal_core.runs import matrices, report_data
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.model import Problem, Score, Scores
from refusal_core.runs.names import split_word
from refusal_core.runs.state import scores_of, whole
from refusal_core.runs.tables import Result, ResultsTable, Table
from refusal_core.runs.text import number

_MEASURES = re.compile(
    r"(?<![a-z])(?:accuracy|acc|f1|precision|recall|loss|auc|auroc|mcc|kappa|ece|brier|perplexity|specificity|"
    r"sensitivity|bleu|rouge\w*|exact_match|score|runtime)(?![a-z])",
    re.I,
)
_COUNTS = re.compile(
    r"(?:n|num|number_of)_(?P<a>[a-z]+)|(?P<b>[a-z]+)_(?:samples|set_size|size|count)|n|samples|num_samples|support",
    re.I,
)
_CONFIG = ("model_type", "architectures", "id2label", "label2id")
_DEPTH = 8
_MOST_RESULTS = 5_000


def is_config(value: Mapping[str, object]) -> bool:
    """Whether it is a checkpoint's config.json."""
    return sum(key in value for key in _CONFIG) >= 2 or ("id2label" in value and isinstance(value["id2label"], Mapping))


def read_config(value: Mapping[str, object], file: str) -> Artefact:
    """Names of the classes in the order of their ids, and the plain settings (a temperature among them)."""
    names = value.get("id2label") if isinstance(value.get("id2label"), Mapping) else {}
    ids = {found: str(name) for key, name in names.items() if (found := whole(number(key))) is not None}
    labels = tuple(ids[i] for i in sorted(ids)) if sorted(ids) == list(range(len(ids))) else ()
    plain = {key: v for key, v in value.items() if isinstance(v, bool | int | float | str) and not key.startswith("_")}
    return Artefact("config", "checkpoint config", file, settings=plain, labels=labels)


def is_wandb(value: Mapping[str, object]) -> bool:
    """Whether it is a W&B run summary."""
    return "_wandb" in value or {"_runtime", "_step"} <= value.keys()


def is_vocabulary(value: Mapping[str, object]) -> bool:
    """Whether it is a tokenizer's: "precision", "recall" and "f1" are tokens with a number in it, too."""
    model = value.get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else value
    numbers = vocabulary.values() if isinstance(vocabulary, Mapping) else ()
    return isinstance(vocabulary, list) or (
        len(numbers) > _MOST_RESULTS and all(isinstance(one, int) for one in numbers)
    )


def read_flat(value: dict[str, object], file: str) -> tuple[list[Artefact], list[Problem]]:
    """The numbers at the top as scores; matrices, reports and deeper numbers as tables.

    Raises InputError when no number in it has the name of a measure.
    """
    wandb = is_wandb(value)
    kind = "W&B summary" if wandb else "results"
    own = {key: v for key, v in value.items() if not key.startswith("_")} if wandb else value
    numbers = {key: v for key, v in own.items() if number(v) is not None}
    tables, rest = _tables(own, file)
    measured = [key for key in numbers if _MEASURES.search(key)]
    if not measured and not tables and not rest:
        if wandb:
            seconds = (
                number((value["_wandb"] or {}).get("runtime")) if isinstance(value.get("_wandb"), Mapping) else None
            )
            ran = "" if seconds is None else f" after {seconds:,.0f} s"
            raise InputError(
                f"it is a W&B summary without any number: the run ended{ran} before it logged one",
                where=file,
                fix="look for another run",
            )
        raise InputError("no number in it has the name of a measure", where=file)
    artefacts = []
    if measured:
        step = number(value.get("_step")) if wandb else None
        scores = _with_counts(scores_of(dict(own), file, split_word(file.rpartition("/")[2])), numbers)
        if isinstance(own.get("split"), str):
            scores = replace(scores, split=split_word(own["split"][:200]))
        steps = scores.step if scores.step is not None or not wandb else step
        artefacts.append(
            Artefact(
                "scores",
                kind,
                file,
                scores=scores,
                step=whole(steps),
                epoch=scores.epoch,
                notes=_not_finite(scores),
                settings=_facts(own),
            )
        )
    if rest:
        tables.append(ResultsTable(file, "", "home-made", tuple(rest), "ok", _facts(own)))
    artefacts += [Artefact("table", kind, file, part=table.name, table=table) for table in tables]
    return artefacts, []


def _tables(value: Mapping, file: str) -> tuple[list[Table], list[Result]]:
    """Matrices and reports under any key, and the numbers of the other nested objects."""
    tables: list[Table] = []
    rest: list[Result] = []
    for path, inner in _nested(value):
        name = ".".join(path)
        if report_data.is_report(inner):
            tables.append(report_data.from_mapping(inner, file, name))
        elif (found := _matrix(inner, file, name)) is not None:
            tables.append(found)
        elif isinstance(inner, Mapping):
            rest += _results(inner, name)
        if len(rest) > _MOST_RESULTS:
            raise InputError(f"it holds more than {_MOST_RESULTS:,} numbers", where=file)
    return tables, rest if any(_MEASURES.search(f"{r.group}.{r.metric}") for r in rest) else []


def _matrix(inner: object, file: str, name: str) -> Table | None:
    if isinstance(inner, list) and not all(isinstance(row, list) for row in inner):
        return None
    try:
        return matrices.from_json(inner, file, name)
    except InputError:
        return None


def _nested(value: Mapping, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every object and list below the top, an outer one before what is in it; not into tables."""
    for key, inner in value.items():
        here = (*path, str(key))
        if isinstance(inner, Mapping) and {"low", "high", "level"} <= inner.keys():  # an interval of our own files
            continue
        if isinstance(inner, Mapping | list) and inner:
            yield here, inner
            is_table = report_data.is_report(inner) or isinstance(inner, list) or _matrix(inner, "", "") is not None
            if isinstance(inner, Mapping) and not is_table and len(here) < _DEPTH:
                yield from _nested(inner, here)


def _results(inner: Mapping, group: str) -> list[Result]:
    found = []
    n = next((whole(number(v)) for key, v in inner.items() if _is_count(key) and number(v) is not None), None)
    for key, value in inner.items():
        known = number(value)
        if known is not None and not isinstance(value, bool):
            found.append(Result(group, key, known if math.isfinite(known) else None, n, status_of(known)))
    return found


def status_of(value: float | None) -> str:
    """The word for a number that may be none."""
    if value is None:
        return "not a number"
    return "ok" if math.isfinite(value) else "not a number" if math.isnan(value) else "infinite"


def _is_count(key: str) -> bool:
    return bool(_COUNTS.fullmatch(key))


def _with_counts(scores: Scores, numbers: Mapping[str, object]) -> Scores:
    """The scores with the items behind them, from keys such as eval_samples, n_test, test_set_size."""
    by_split: dict[str, int] = {}
    for key, value in numbers.items():
        found = _COUNTS.fullmatch(key)
        count = whole(number(value))
        if found and count and count > 0:
            by_split.setdefault(split_word(found["a"] or found["b"] or "") if found["a"] or found["b"] else "", count)
    only = next(iter(by_split.values())) if len(by_split) == 1 else None
    counted = tuple(
        Score(
            s.metric, s.split, s.dataset, s.label, s.key, s.value, by_split.get(s.split, only if not s.split else None)
        )
        for s in scores.scores
        if not _is_count(s.key) and not s.key.startswith(("n_", "num_"))
    )
    splits = {s.split for s in counted}
    n = by_split.get(next(iter(splits))) if len(splits) == 1 else None
    return replace(scores, scores=counted, n=n if n is not None else only)


def _not_finite(scores: Scores) -> tuple[str, ...]:
    keys = [f'"{s.key}"' for s in scores.scores if not math.isfinite(s.value)]
    return (f"not a finite number: {', '.join(keys[:10])}",) if keys else ()


def _facts(value: Mapping) -> dict[str, str]:
    """Short texts beside the numbers: model, split, version."""
    return {k: v[:200] for k, v in value.items() if isinstance(v, str) and number(v) is None and len(v) < 2_000}
