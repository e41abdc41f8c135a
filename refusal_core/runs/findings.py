"""What the reader of a run should know: divergence, metrics that stand still, over-fitting, evaluations that lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from refusal_core.runs import results
from refusal_core.runs.contradictions import contradictions
from refusal_core.runs.copies import copies
from refusal_core.runs.diverged import first_step, signs_of
from refusal_core.runs.model import Curve, Finding, Run
from refusal_core.runs.own_evaluation import EVALUATED, TIMINGS

_FEWEST = 3  # evaluations that a pattern is told from
_RISE = 0.1  # of the lowest loss, that over-fitting is told from


def findings_of(runs: Sequence[Run]) -> list[Finding]:
    """Everything that does not add up, in the order of the runs; what concerns several of them last."""
    found: list[Finding] = []
    for run in runs:
        found += of_run(run)
    return found + copies(runs)


def of_run(run: Run) -> list[Finding]:
    """What was found while the run was put together, then what its curves say, then what its tables say."""
    own = [replace(f, run=run.name) for f in run.findings]
    checks = (_diverged, _gradients, _constant, _overfitting, _resumed, _missing_evaluation, *results.CHECKS)
    return own + [f for check in checks for f in check(run)] + contradictions(run)


def _diverged(run: Run) -> Iterator[Finding]:
    signs = signs_of(run.curves)
    if not signs:
        return
    curve, step, _ = signs[0]
    told = "; ".join(dict.fromkeys(f"{what} (step {at:,.0f})" for _, at, what in signs[:3]))
    good = [c.name for c in run.checkpoints if c.step is not None and c.step < step and c.folder]
    take = f"take {good[-1]}, the last one from before it, or" if good else "no checkpoint is from before it:"
    yield Finding(
        "diverged",
        run.name,
        f"{curve.file}, step <= {step:,.0f}",
        "finite losses",
        told,
        f"{take} train again with a lower learning rate or clipped gradients",
    )


def _gradients(run: Run) -> Iterator[Finding]:
    """Gradient norms that are not finite while the loss goes on: an overflow, which the scaler skips."""
    if signs_of(run.curves):
        return
    for norm in _curves(run, "grad_norm", "train"):
        odd = norm.current().take(~np.isfinite(norm.current().values))
        if len(odd):
            yield Finding(
                "grad_norm_not_finite",
                run.name,
                f"{norm.file}, step {first_step(odd):,.0f}",
                "finite gradient norms",
                f"{len(odd):,} of {len(norm.current()):,} are not finite; the loss stays finite and above 0",
                "a single overflow in half precision is skipped by the scaler; many of them ask for bfloat16",
            )


def _constant(run: Run) -> Iterator[Finding]:
    """Scores that are the same at every evaluation, in one finding."""
    still = []
    for curve in _evaluated(run):
        values = curve.current().values
        if (
            curve.metric != "loss"
            and len(values) >= _FEWEST
            and np.isfinite(values).all()
            and (values == values[0]).all()
        ):
            still.append(curve)
    if not still:
        return
    n = len(still[0].current())
    told = ", ".join(f"{curve.key} {curve.values[-1]:.4g}" for curve in still[:6])
    more = f" and {len(still) - 6} more" if len(still) > 6 else ""
    yield Finding(
        "constant_metric",
        run.name,
        still[0].file,
        f"scores that move between {n} evaluations",
        f"the same each time: {told}{more}",
        "the model may give one answer to everything, or the same weights were evaluated: look at the confusion matrix",
    )


def _overfitting(run: Run) -> Iterator[Finding]:
    """From where the evaluation's loss rises for good while that of the training falls; all evaluation sets in one."""
    rising = [found for curve in run.curves if (found := _rises(run, curve)) is not None]
    if not rising:
        return
    onset = min(at for at, _, _ in rising)
    _, curve, lowest = next(found for found in rising if found[0] == onset)
    current = curve.current()
    others = [c.key for _, c, _ in rising if c is not curve]
    yield Finding(
        "overfitting",
        run.name,
        f"{curve.file}, from step {onset:,.0f}",
        f"{curve.key} near its lowest, {lowest:.4f}",
        f"it rises to {current.values[-1]:.4f} at step {current.steps[-1]:,.0f} while the training loss falls"
        + _while_accuracy(run, curve.dataset, onset)
        + (f"; so do {', '.join(others[:8])}" if others else ""),
        f"take a checkpoint near step {onset:,.0f}, or stop early",
    )


def _rises(run: Run, curve: Curve) -> tuple[float, Curve, float] | None:
    """(onset, curve, lowest value) of an evaluation loss that only rises after its lowest point."""
    if curve.metric != "loss" or curve.split != "eval":
        return None
    current = curve.current()
    current = current.take(np.isfinite(current.values) & np.isfinite(current.steps))
    if len(current) < _FEWEST + 1:
        return None
    at = int(np.argmin(current.values))
    lowest, after = float(current.values[at]), current.values[at + 1 :]
    rise = float(np.median(after[-_FEWEST:])) - lowest if len(after) >= _FEWEST else 0.0
    onset = float(current.steps[at])
    return (onset, curve, lowest) if rise > _RISE * abs(lowest) and _falls(run, onset) else None


def _falls(run: Run, onset: float) -> bool:
    """Whether the training loss after a step is lower than about it."""
    for loss in _curves(run, "loss", "train"):
        current = loss.current()
        current = current.take(np.isfinite(current.values))
        before, after = current.values[current.steps <= onset], current.values[current.steps > onset]
        if not len(before):  # logged too seldom to say more than that it falls from there
            before, after = after[:1], after[1:]
        if len(before) and len(after):
            return float(np.median(after[-_FEWEST:])) < float(np.median(before[-_FEWEST:]))
    return False


def _while_accuracy(run: Run, dataset: str, onset: float) -> str:
    """What the accuracy does meanwhile: when it does not fall, the answers hold and only their confidence suffers."""
    for curve in _evaluated(run):
        if curve.metric in ("macro_f1", "f1", "accuracy") and curve.dataset == dataset:
            current = curve.current()
            there, last = current.values[current.steps == onset], current.values[-1:]
            if (current.values == current.values[0]).all():
                continue
            if len(there) and np.isfinite([there[0], last[0]]).all() and last[0] >= there[0]:
                return (
                    f"; {curve.key} does not suffer ({there[0]:.4f} then {last[0]:.4f}): the answers hold, "
                    "their probabilities grow too sure"
                )
    return ""


def _resumed(run: Run) -> Iterator[Finding]:
    for step in run.resumed_at:
        replaced = [c for c in run.curves if c.superseded.any() and (c.steps[c.superseded] > step).any()]
        old = sum(int((c.superseded & (c.steps > step)).sum()) for c in replaced)
        tail = f"; {old:,} values of the attempt before are replaced and drawn faint" if old else ""
        changed = [note for note in run.notes if note.startswith(f"the settings changed at step {step:,.0f}")]
        yield Finding(
            "resumed",
            run.name,
            f"{run.sources[-1] if run.sources else run.folder}, step {step:,.0f}",
            "one attempt from start to end",
            f"resumed at step {step:,.0f}{tail}" + (f"; {changed[0]}" if changed else ""),
            "nothing to mend: the latest attempt counts",
        )


def _missing_evaluation(run: Run) -> Iterator[Finding]:
    """Saved checkpoints without an evaluation of their own, the last one first."""
    evaluated = np.unique(np.concatenate([c.current().steps for c in _evaluated(run)] or [np.empty(0)]))
    trained = np.concatenate([c.steps for c in _curves(run, "loss", "train")] or [np.empty(0)])
    fix = "evaluate it on its own, or save and evaluate at the same steps"
    if not len(evaluated):
        if len(trained) and not any(c.metrics for c in run.checkpoints) and not run.scores and not run.tables:
            where = run.sources[-1] if run.sources else run.folder
            yield Finding("missing_evaluation", run.name, where, "an evaluation", "the run has none", fix)
        return
    without = [c for c in run.checkpoints if c.metrics is None and c.step is not None]
    last = max((c.step for c in run.checkpoints if c.step is not None), default=None)
    for checkpoint in (c for c in without if c.step == last):
        told = f"the last one is at step {evaluated[-1]:,.0f}"
        yield Finding("missing_evaluation", run.name, checkpoint.name, f"an evaluation at step {last:,}", told, fix)
    others = [c for c in without if c.step != last]
    if others:
        names = ", ".join(c.name for c in others[:10])
        nearest = [f"{evaluated[np.argmin(np.abs(evaluated - c.step))]:,.0f}" for c in others[:10]]
        told = f"none of theirs; the nearest ones are at step {', '.join(nearest)}"
        yield Finding("missing_evaluation", run.name, names, "an evaluation at the step of each", told, fix)


def _curves(run: Run, metric: str, split: str) -> list[Curve]:
    return [c for c in run.curves if c.metric == metric and c.split == split]


def _evaluated(run: Run) -> list[Curve]:
    plain = [c for c in run.curves if c.split in EVALUATED and c.label is None and c.metric not in TIMINGS]
    return [c for c in plain if len(c.current())]
