"""The files of a demonstration: report.json, trajectories.csv, README.txt, and the folder that holds them.

No time, host or path is in them: the same settings give the same bytes with the same versions.
"""

from __future__ import annotations

import contextlib
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from io import StringIO
from pathlib import Path

import numpy as np

from refusal_core.climb.demonstration import BOOTSTRAP, SIMULATED, Curve, Demonstration, Paired, Summary
from refusal_core.climb.policy import in_logits
from refusal_core.climb.runs import Runs
from refusal_core.errors import InputError
from refusal_core.metrics.intervals import Rate
from refusal_core.reports import atomic_file, atomic_folder, to_json, write_csv
from refusal_core.versions import versions

SCHEMA = "refusal-climb/1"
FILES = ("report.json", "trajectories.csv", "report.html", "README.txt")
CSV_HEADER = ("method", "seed", "evaluation", "score", "value", "regret", "restart", "sequence")
WATCHED = ("refusal-core", "numpy", "scipy")
ALL_EQUAL = "every seed has the same value: resampling them says nothing"
ONE_SEED = "one seed: there is no spread to see"
NO_NOISE = "without noise a fresh evaluation repeats the score"


def report(demonstration: Demonstration) -> dict:
    """The contents of report.json. Logits are numbers with at most six decimals; means are unrounded."""
    d = demonstration
    climb = d.runs["climb"]
    return {
        "schema": SCHEMA,
        "simulated": SIMULATED,
        "configuration": asdict(d.settings),
        "configuration_sha256": d.settings.sha256,
        "versions": versions(WATCHED),
        "policy": _policy(d),
        "summary": {"method": "climb", **_summary(d.summaries["climb"])},
        "seeds": [_seed(d, climb, place) for place in range(len(climb.seeds))],
        "baselines": [{"method": p.method, **_summary(d.summaries[p.method]), "paired": _paired(p)} for p in d.paired],
        "fanouts": [{"fanout": fanout, **_summary(summary)} for fanout, summary in d.fanouts.items()],
        "bootstrap": BOOTSTRAP,
    }


def report_json(demonstration: Demonstration) -> str:
    return to_json(report(demonstration), indent=1) + "\n"


def trajectories_csv(demonstration: Demonstration) -> str:
    """Every evaluation that scored better than all before it in its run, of all methods, with CRLF line ends."""
    file = StringIO(newline="")
    write_csv(file, CSV_HEADER, _rows(demonstration))
    return file.getvalue()


def readme_txt(demonstration: Demonstration) -> str:
    """What the folder holds, in plain words."""
    d, s = demonstration, demonstration.settings
    side = "highest" if s.objective == "raise" else "lowest"
    opening = (
        f"{s.seeds:,} searches, one a seed, looked for the sequence of {s.length} made-up tokens with the {side} "
        f"refusal logit, each with a budget of {s.budget:,} evaluations. Because the table behind the scores is known, "
        f"so is the exact best logit ({in_logits(d.optimum.value):.6f}), and with it how far each search ended from "
        "it: its regret."
    )
    return _README.format(
        simulated=textwrap.fill(SIMULATED, 100),
        opening=textwrap.fill(opening, 100),
        sentence=textwrap.fill(d.sentence(), 100),
        command=s.command(),
        configuration=s.sha256,
    )


_README = """SEARCH DEMONSTRATION (SIMULATED)

{simulated}

{opening}

{sentence}

report.html       the figures and tables; opens in any browser, without a network
report.json       everything as numbers: configuration, versions, each seed, summary, baselines, fan-outs
trajectories.csv  one line for each evaluation that scored better than all before it in its run
README.txt        this text

How to read it
- best, value: the exact logit of a sequence, without noise. score, reported: what an evaluation showed.
- regret: how far the exact logit of the result is from the optimum, in logits; 0 is perfect.
- flattery: how much better the reported score looks than a fresh evaluation of the same result. The
  search keeps the best of many noisy scores, and the best of many is also the luckiest: that is the
  winner's curse. Without noise there is none.
- numbers in brackets are a 95% interval over the seeds and how many there were. The interval speaks
  of other seeds on this one policy, not of other policies.
- baselines ran with the same budget and the same seeds, and are compared seed by seed.

The same again: {command}
Configuration {configuration}
"""


def files(demonstration: Demonstration, html: str) -> dict[str, str]:
    """The contents of the four FILES by name; `html` is that of report.html, which `plots` draws."""
    return {
        "report.json": report_json(demonstration),
        "trajectories.csv": trajectories_csv(demonstration),
        "report.html": html,
        "README.txt": readme_txt(demonstration),
    }


@contextlib.contextmanager
def output_folder(out: str, *, force: bool = False) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """Check the folder `out` before the work, and give a function that writes the FILES of `files` into it.

    It may be new, empty, or an earlier report's, which is replaced as a whole at the end. Raises InputError when it
    holds anything else; with `force` the files are put beside that instead, each one whole or not at all.
    """
    if force and Path(out).is_dir():
        yield lambda contents: _put_beside(Path(out), contents)
        return
    _check_ours(out)
    with atomic_folder(out, FILES) as folder:
        yield lambda contents: _put(folder, contents)


def _put(folder: Path, contents: Mapping[str, str]) -> None:
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")


def _put_beside(folder: Path, contents: Mapping[str, str]) -> None:
    for name, text in contents.items():
        with atomic_file(folder / name) as file:
            file.write(text)


def _check_ours(out: str) -> None:
    """Raise InputError when `out` holds files that bear our names but are no earlier report."""
    folder = Path(out)
    named_so = [name for name in FILES if (folder / name).exists()] if folder.is_dir() else []
    if not named_so:
        return
    try:
        schema = json.loads((folder / "report.json").read_bytes()).get("schema")
    except (OSError, ValueError, AttributeError, RecursionError):
        schema = None
    if schema != SCHEMA:
        raise InputError(
            f"the folder holds {', '.join(named_so)}",
            where=out,
            why="no earlier run wrote that",
            fix="name a new or empty folder, or use --force to write over these names",
        )


def _policy(d: Demonstration) -> dict:
    p = d.policy
    return {
        "sha256": p.sha256,
        "tokens": p.tokens,
        "bias": in_logits(p.bias),
        "weights": in_logits(p.weights),
        "interactions": in_logits(p.interactions),
        "optimum": {"value": in_logits(d.optimum.value), "sequence": p.words(np.array(d.optimum.sequence))},
    }


def _seed(d: Demonstration, runs: Runs, place: int) -> dict:
    row = runs.result[place]
    return {
        "seed": runs.seeds[place],
        "best": in_logits(runs.value[row]),
        "optimum": in_logits(d.optimum.value),
        "regret": in_logits(d.regret(runs.value[row])),
        "evaluations": runs.evaluations[place],
        "restarts": runs.restarts[place],
        "reported": in_logits(runs.score[row]),
        "fresh": in_logits(runs.fresh[place]),
        "sequence": d.policy.words(runs.sequence[row]),
        "trajectory": [
            {
                "evaluation": runs.at[r],
                "score": in_logits(runs.score[r]),
                "value": in_logits(runs.value[r]),
                "restart": runs.restart[r],
                "sequence": d.policy.words(runs.sequence[r]),
            }
            for r in runs.rows(place)
        ],
    }


def _summary(summary: Summary) -> dict:
    return {
        "regret": {**_rate(summary.regret), **asdict(summary.spread)},
        "reached_optimum": _rate(summary.reached, "share"),
        "flattery": {"not_available": NO_NOISE} if summary.flattery is None else _rate(summary.flattery),
        "curve": _curve(summary.curve),
    }


def _paired(paired: Paired) -> dict:
    return {
        "regret_less_climbs": _rate(paired.difference),
        "seeds": {"climb_closer": paired.closer, "equal": paired.equal, "climb_farther": paired.farther},
        "verdict": paired.verdict,
    }


def _rate(rate: Rate, name: str = "mean") -> dict:
    interval = asdict(rate.interval) if rate.interval else {"not_available": ONE_SEED if rate.n == 1 else ALL_EQUAL}
    return {name: rate.value, "n": rate.n, "interval": interval}


def _curve(curve: Curve) -> dict:
    return {
        "evaluations": curve.budgets,
        "mean_regret": curve.regret,
        "low": curve.low,
        "high": curve.high,
        "mean_reported": curve.reported,
        "mean_exact": curve.exact,
    }


def _rows(d: Demonstration) -> Iterator[tuple]:
    for method, runs in d.runs.items():
        for place, seed in enumerate(runs.seeds):
            for r in runs.rows(place):
                score, value, regret = (in_logits(x) for x in (runs.score[r], runs.value[r], d.regret(runs.value[r])))
                yield method, seed, runs.at[r], score, value, regret, runs.restart[r], d.policy.words(runs.sequence[r])
