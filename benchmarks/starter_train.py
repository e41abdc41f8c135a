"""Train the starter as it ships: the clean public rows and the corpus, by the recipe of `train`.

    python benchmarks/starter_train.py --data DIR --output DIR [--resume] [--seed N]

DIR holds train.jsonl, train_more.jsonl, validation.jsonl and validation_more.jsonl of the public rows. Stopped by
Ctrl+C or a kill, it goes on with --resume. The settings are those that `benchmarks/starter_rotation.py` found.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refusal_core.commands import terminal
from refusal_core.commands.entry import Parser, guarded
from refusal_core.training.encoder import ENCODER_NAME, encoder_folder
from refusal_core.training.recipe import train
from refusal_core.training.starter import STARTER, starter_parts


def run(args: argparse.Namespace) -> int:
    parts = starter_parts(args.data)
    for name, part in (("training", parts.train), ("validation", parts.validation)):
        terminal.say(f"{len(part.exchanges):,} {name} rows; left out: {part.left_out}")
    settings = replace(STARTER.settings, seed=args.seed)
    with terminal.progress("train") as job:
        result = train(
            parts, encoder_folder(), args.output, settings, resume=args.resume, base_name=ENCODER_NAME, job=job
        )
    terminal.say(f"kept: {result.kept}; temperature {result.temperature:g}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public rows")
    parser.add_argument("--output", type=Path, required=True, help="new folder for the checkpoint")
    parser.add_argument("--resume", action="store_true", help="go on with a training of this output that was stopped")
    parser.add_argument("--seed", type=int, default=0)
    return guarded(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
