"""`run`: the search demonstration, on a simulated policy; it checks the search, not a model."""

from __future__ import annotations

import argparse

from refusal_core.climb import Settings, demonstrate
from refusal_core.climb.demonstration import SIMULATED
from refusal_core.climb.policy import OBJECTIVES
from refusal_core.climb.report import FILES, files, output_folder
from refusal_core.climb.settings import REAL, WHOLE
from refusal_core.commands import terminal
from refusal_core.limits import CLIMB_SCALE
from refusal_core.plots.climb_report import climb_report

NAME = "run"
HELP = "the search demonstration, on a simulated policy"
HELPS = {
    "seeds": "searches to run, with the seeds 0, 1, 2, ...",
    "budget": "evaluations that each search may spend",
    "fanout": "substitutions that the search tries before it moves",
    "length": "tokens of a sequence",
    "vocabulary": "tokens to choose from",
    "interactions": "sd of the terms between neighbours, as a multiple of that of the token weights",
    "noise": "sd of the error of one evaluation, in logits",
    "policy_seed": "seed of the simulated policy",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name, text in HELPS.items():
        low, high = WHOLE.get(name, (0, CLIMB_SCALE))
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=float if name in REAL else int,
            default=getattr(Settings, name),
            metavar="X" if name in REAL else "N",
            help=f"{text}, {low:,} to {high:,} (default: {getattr(Settings, name):g})",
        )
    parser.add_argument(
        "--objective",
        choices=OBJECTIVES,
        default=Settings.objective,
        help=f"direction of the search on the refusal logit (default: {Settings.objective})",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help=f"folder to write: {', '.join(FILES)}")
    parser.add_argument(
        "--force", action="store_true", help="write into a folder that holds something else; other files stay"
    )


def run(args: argparse.Namespace) -> int:
    settings = Settings(**{name: getattr(args, name) for name in (*HELPS, "objective")})
    with output_folder(args.out, force=args.force) as put, terminal.progress("run") as job:
        demonstration = demonstrate(settings, job)
        put(files(demonstration, climb_report(demonstration)))
    terminal.say(SIMULATED)
    terminal.say(demonstration.sentence())
    for paired in demonstration.paired:
        terminal.say(f"  regret of {paired.method} less the climb's: {paired.difference}, {paired.verdict}")
    return 0
