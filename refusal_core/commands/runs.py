"""`runs`: what the files of a folder say about the trainings in it."""

from __future__ import annotations

import argparse
import math

from refusal_core.commands import terminal
from refusal_core.errors import one_line
from refusal_core.reports import to_json
from refusal_core.runs.answer import answer
from refusal_core.runs.discover import discover
from refusal_core.runs.findings import findings_of
from refusal_core.runs.json_form import to_json as as_json
from refusal_core.runs.model import Curve, Finding, Problem, Run, Scores
from refusal_core.runs.tables import MatrixTable, OneVsRestTable, ReportTable, ResultsTable, Table

NAME = "runs"
HELP = "what the files of a training folder say: runs, checkpoints, scores, and what does not add up"
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="a training's output folder, or one with many below it")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")


def run(args: argparse.Namespace) -> int:
    with terminal.progress("runs") as job:
        runs, problems = discover(args.folder, job)
    found = findings_of(runs)
    if args.json:
        print(to_json(as_json(runs, problems, found)))
    else:
        print("\n".join(summary(runs, problems, found)))
    return 0


def summary(runs: list[Run], problems: list[Problem], findings: list[Finding]) -> list[str]:
    """The lines for a person at the terminal."""
    lines = [f"{len(runs):,} {'run' if len(runs) == 1 else 'runs'}"]
    for finding in findings:
        lines.append(
            f"! {finding.kind}, {finding.run}, {finding.where}: expected {finding.expected}; "
            f"found {finding.found}. To mend it: {finding.fix}"
        )
    for each in runs:
        lines += ["", *_run(each)]
    ours = [problem for problem in problems if problem.ours]
    if ours:
        lines += ["", f"Files not read, or not as they are: {len(ours):,}"]
        lines += [f"  {p.file}: {p.what}" + (f"; {p.fix}" if p.fix else "") for p in ours[:_SHOWN]]
        lines += [f"  and {len(ours) - _SHOWN:,} more (--json lists them)"] if len(ours) > _SHOWN else []
    if others := len(problems) - len(ours):
        lines += ["", f"Other files, which are no run artefacts: {others:,}"]
    return [one_line(line, 2_000) for line in lines]


def _run(run: Run) -> list[str]:
    lines = [run.name if run.folder in ("", run.name) else f"{run.name}  ({run.folder})"]
    lines.append(f"  {answer(run).sentence}")
    for checkpoint in run.checkpoints:
        told = "" if checkpoint.metrics is None else _told(checkpoint.metrics)
        lines.append(f"  {checkpoint.name}: {told or 'no evaluation of its own'}")
    lines += [f"  {_curve(curve)}" for curve in run.curves if curve.label is None and _is_headline(curve.metric)]
    for scores in run.scores:
        told = _told(scores)
        lines.append(f"  {scores.file}: {told}" + (f" (n = {scores.n:,})" if scores.n else ""))
    return lines + [f"  {_table(table)}" for table in run.tables]


def _told(scores: Scores) -> str:
    """The headline numbers, or the first ones where there are none."""
    plain = [s for s in scores.scores if s.label is None]
    return ", ".join(f"{s.key} {_value(s.value)}" for s in [s for s in plain if _is_headline(s.metric)] or plain[:4])


def _is_headline(metric: str) -> bool:
    return metric in ("loss", "accuracy", "macro_f1", "weighted_f1", "f1", "grad_norm", "balanced_accuracy", "mcc")


def _value(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else str(value)


def _curve(curve: Curve) -> str:
    current = curve.current()
    odd = sum(not math.isfinite(value) for value in current.values)
    steps = [step for step in current.steps if math.isfinite(step)]
    where = f", steps {min(steps):,.0f} to {max(steps):,.0f}" if steps else ""
    last = _value(float(current.values[-1])) if len(current) else "none"
    broken = f", {odd:,} not finite" if odd else ""
    replaced = f", {len(curve) - len(current):,} replaced" if len(curve) > len(current) else ""
    values = "1 value" if len(current) == 1 else f"{len(current):,} values"
    return f"{curve.key}: {values}{where}, last {last}{broken}{replaced}"


def _table(table: Table) -> str:
    name = f"{table.file}" + (f" [{table.name}]" if table.name else "")
    if isinstance(table, ReportTable):
        macro = table.average("macro")
        f1 = "" if macro is None or macro.f1 is None else f", macro F1 {macro.f1:.4f}"
        return f"{name}: report of {len(table.classes)} classes{f1}" + (f", n = {table.n:,}" if table.n else "")
    if isinstance(table, MatrixTable):
        axes = (
            "rows and columns not stated" if table.rows == "unknown" else f"rows {table.rows}, columns {table.columns}"
        )
        return f"{name}: confusion matrix of {len(table.labels)} classes, {axes}" + (
            f", n = {table.n:,}" if table.n else ""
        )
    if isinstance(table, OneVsRestTable):
        return f"{name}: counts of {len(table.labels)} classes against the rest"
    assert isinstance(table, ResultsTable)
    told = ", ".join(
        f"{r.metric} {'none' if r.value is None else f'{r.value:.4g}'}" + (f" (n = {r.n:,})" if r.n else "")
        for r in table.rows[:4]
    )
    return f"{name}: {table.tool}, {table.status}; {told}"
