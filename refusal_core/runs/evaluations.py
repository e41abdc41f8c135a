"""Results of promptfoo, Inspect and lm-eval: metric, value, n, status. "Nothing ran" is said and is no pass."""

from __future__ import annotations

import math
from collections.abc import Mapping

from refusal_core.runs.flat import status_of
from refusal_core.runs.state import whole
from refusal_core.runs.tables import Result, ResultsTable
from refusal_core.runs.text import number

NOTHING = "nothing ran"


def read_evaluation(value: object, file: str) -> ResultsTable | None:
    """The table, or None when the value is the output of none of the three."""
    if not isinstance(value, Mapping):
        return None
    results = value.get("results")
    if isinstance(results, Mapping) and "version" in results and isinstance(results.get("results"), list):
        return _promptfoo(results, file, value)
    if isinstance(value.get("eval"), Mapping) and isinstance(value.get("status"), str):
        return _inspect(value, file)
    marks = ("higher_is_better", "n-samples", "configs", "versions", "n-shot")
    if isinstance(results, Mapping) and results and any(isinstance(value.get(mark), Mapping) for mark in marks):
        return _lm_eval(value, results, file)
    return None


def _promptfoo(results: Mapping, file: str, value: Mapping) -> ResultsTable:
    """A failed assertion is a fail, also where its text stands in "error"; errors are counted apart."""
    rows: list[Result] = []
    for prompt in results.get("prompts") or ():
        counts = prompt.get("metrics") if isinstance(prompt, Mapping) else None
        if isinstance(counts, Mapping):
            rows += _promptfoo_prompt(prompt, counts)
    if not rows:
        rows += _promptfoo_rows(results["results"])
    ran = bool(results["results"]) or any(row.n for row in rows)
    facts = _texts(
        {"evalId": value.get("evalId"), "version": results["version"], "timestamp": results.get("timestamp")}
    )
    return ResultsTable(file, str(value.get("evalId") or ""), "promptfoo", tuple(rows), "ok" if ran else NOTHING, facts)


def _promptfoo_prompt(prompt: Mapping, counts: Mapping) -> list[Result]:
    group = str(prompt.get("provider") or "")
    passed, failed, errors = (_count(counts.get(f"test{what}Count")) for what in ("Pass", "Fail", "Error"))
    n = passed + failed + errors
    rows = [
        Result(group, "pass rate", passed / n if n else None, n, "ok" if n else NOTHING),
        Result(group, "tests failed", float(failed), n, "ok"),
        Result(group, "tests with an error", float(errors), n, "ok"),
    ]
    asserted, missed = _count(counts.get("assertPassCount")), _count(counts.get("assertFailCount"))
    if asserted + missed:
        rows.append(Result(group, "assertion pass rate", asserted / (asserted + missed), asserted + missed, "ok"))
    for name, score in (counts.get("namedScores") or {}).items():
        of = _count((counts.get("namedScoresCount") or {}).get(name))
        found = number(score)
        value = found / of if of and found is not None else found
        rows.append(Result(group, str(name), _finite(value), of or None, status_of(value), higher_is_better=True))
    return rows


def _promptfoo_rows(results: list) -> list[Result]:
    """Without counts by prompt: from the results themselves; `failureReason` 2 is an error, 1 a failed assertion."""
    by_provider: dict[str, list[int]] = {}
    for row in results:
        if isinstance(row, Mapping):
            provider = row.get("provider")
            name = str(provider.get("id") if isinstance(provider, Mapping) else provider or "")
            counts = by_provider.setdefault(name, [0, 0, 0])
            counts[0 if row.get("success") is True else 2 if row.get("failureReason") == 2 else 1] += 1
    rows = []
    for name, (passed, failed, errors) in by_provider.items():
        rows += _promptfoo_prompt(
            {"provider": name}, {"testPassCount": passed, "testFailCount": failed, "testErrorCount": errors}
        )
    return rows


def _inspect(value: Mapping, file: str) -> ResultsTable:
    of, results = value["eval"], value.get("results") if isinstance(value.get("results"), Mapping) else {}
    done = whole(number(results.get("completed_samples")))
    total = whole(number(results.get("total_samples")))
    offered = (
        whole(number((of.get("dataset") or {}).get("samples"))) if isinstance(of.get("dataset"), Mapping) else None
    )
    rows = []
    for scorer in results.get("scores") or ():
        metrics = scorer.get("metrics") if isinstance(scorer, Mapping) else None
        if isinstance(metrics, Mapping):
            rows += _inspect_scorer(scorer, metrics, done)
    status = "ok"
    if value["status"] != "success":
        status = f"incomplete: {value['status']}"
    elif not rows or done == 0:
        status = NOTHING
    elif total is not None and done is not None and done < total:
        status = f"incomplete: {done:,} of {total:,} samples"
    elif offered and done is not None and done < offered:
        status = f"a part: {done:,} of {offered:,} samples (limit)"
    texts = {
        "task": of.get("task"),
        "model": of.get("model"),
        "created": of.get("created"),
        "version": value.get("version"),
    }
    return ResultsTable(file, str(of.get("task") or ""), "Inspect", tuple(rows), status, _texts(texts))


def _inspect_scorer(scorer: Mapping, metrics: Mapping, done: int | None) -> list[Result]:
    group, rows = str(scorer.get("name") or ""), []
    errors = {name: number(m.get("value")) for name, m in metrics.items() if isinstance(m, Mapping)}
    error = errors.get("stderr")
    n = whole(number(scorer.get("scored_samples")))
    for name, metric in metrics.items():
        if isinstance(metric, Mapping) and name not in ("stderr", "bootstrap_stderr"):
            found = number(metric.get("value"))
            stated = error if name in ("accuracy", "mean") else None
            rows.append(
                Result(group, str(name), _finite(found), done if n is None else n, status_of(found), _finite(stated))
            )
    return rows


def _lm_eval(value: Mapping, results: Mapping, file: str) -> ResultsTable:
    better = value.get("higher_is_better") if isinstance(value.get("higher_is_better"), Mapping) else {}
    samples = value.get("n-samples") if isinstance(value.get("n-samples"), Mapping) else {}
    rows: list[Result] = []
    for task, metrics in results.items():
        if not isinstance(metrics, Mapping):
            continue
        direction = better.get(task) if isinstance(better.get(task), Mapping) else {}
        count = samples.get(task) if isinstance(samples.get(task), Mapping) else {}
        n = whole(number(count.get("effective", count.get("original"))))
        for key, given in metrics.items():
            name, _, how = key.partition(",")
            if name in ("alias", "sample_len") or name.endswith("_stderr"):
                continue
            found = number(given)
            if found is None and not isinstance(given, str):
                continue
            error = number(metrics.get(f"{name}_stderr,{how}" if how else f"{name}_stderr"))
            shown = f"{name} ({how})" if how and how != "none" else name
            is_better = direction.get(name) if isinstance(direction.get(name), bool) else None
            rows.append(Result(str(task), shown, _finite(found), n, status_of(found), _finite(error), is_better))
    config = value.get("config") if isinstance(value.get("config"), Mapping) else {}
    facts = _texts(
        {key: value.get(key, config.get(key)) for key in ("model_name", "model", "lm_eval_version", "limit")}
    )
    return ResultsTable(file, "", "lm-eval", tuple(rows), _lm_status(rows, config), facts)


def _lm_status(rows: list[Result], config: Mapping) -> str:
    if not rows:
        return NOTHING
    limit = number(config.get("limit"))
    return "ok" if limit is None else f"a part: limit {limit:g}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _count(value: object) -> int:
    return max(whole(number(value)) or 0, 0)


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value)[:200] for key, value in values.items() if isinstance(value, str | int | float)}
