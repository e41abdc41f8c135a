"""Trials of the starter's training, each with whole sources left out: what decided the settings that ship.

    python benchmarks/starter_rotation.py --data DIR --journal FILE [--trial NAME ...] [--group NAME ...] [--seeds 0 1]
    python benchmarks/starter_rotation.py --journal FILE --table

Each turn is appended to the journal, one JSON line, once it is done; a turn that is in the journal is not run again,
so the script may be stopped and started at will. `--table` prints the journal as a table and trains nothing.
DIR holds train.jsonl, train_more.jsonl and train_composites.jsonl of the public rows.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from refusal_core.training.data import read_training_data
from refusal_core.training.encoder import encoder_folder
from refusal_core.training.rotation import GROUPS, Trial, turn
from refusal_core.training.settings import Settings
from refusal_core.training.starter import corpus_rows, public_rows

SHORT = Settings(max_length=128, average_share=0.25, freeze_embeddings=True, bfloat16=True)
BASE = Trial("base", SHORT, corpus_times=2, source_cap=80)
TRIALS = {
    trial.name: trial
    for trial in (
        BASE,
        replace(BASE, name="rate 2e-4", settings=replace(SHORT, learning_rate=2e-4)),
        replace(BASE, name="rate 5e-5", settings=replace(SHORT, learning_rate=5e-5)),
        replace(BASE, name="3 epochs", settings=replace(SHORT, epochs=3)),
        replace(BASE, name="smoothing 0.1", settings=replace(SHORT, label_smoothing=0.1)),
        replace(BASE, name="embeddings trained", settings=replace(SHORT, freeze_embeddings=False)),
        replace(BASE, name="no class weights", settings=replace(SHORT, weight_power=0.0)),
        replace(BASE, name="full class weights", settings=replace(SHORT, weight_power=1.0)),
        replace(BASE, name="256 tokens", settings=replace(SHORT, max_length=256)),
        replace(BASE, name="corpus four times", corpus_times=4),
        replace(BASE, name="corpus once", corpus_times=1),
        replace(BASE, name="varied copies", vary_copies=True),
        replace(BASE, name="mean pooling", mean_pooling=True),
        replace(BASE, name="3 epochs, varied copies", settings=replace(SHORT, epochs=3), vary_copies=True),
        replace(BASE, name="public rows not capped", source_cap=0),
        replace(BASE, name="composites", composites=True),
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the public rows")
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--trial", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--table", action="store_true", help="print the journal and train nothing")
    args = parser.parse_args()
    if not args.table:
        run(args)
    print(table(read(args.journal)))


def run(args: argparse.Namespace) -> None:
    public = public_rows(args.data, "train").exchanges
    corpus, development = corpus_rows("train").exchanges, corpus_rows("development").exchanges
    composites = read_training_data([args.data / "train_composites.jsonl"]).exchanges
    for seed in args.seeds:
        for group in args.group:
            for name in args.trial:
                trial = replace(TRIALS[name], settings=replace(TRIALS[name].settings, seed=seed))
                done = {(t["trial"], t["left_out"], t["settings"]["settings"]["seed"]) for t in read(args.journal)}
                if (name, group, seed) in done:
                    continue
                result = turn(trial, group, public, corpus, development, encoder_folder(), composites)
                with args.journal.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(result) + "\n")


def read(journal: Path) -> list[dict]:
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def table(turns: list[dict]) -> str:
    """Macro F1 on what each turn left out and on the development domains, as Markdown: a line a trial, seed, number of
    steps (as epochs) and weights; then how far the seeds of a trial lie apart."""
    cells: dict[tuple, dict[tuple[str, str], float]] = defaultdict(dict)
    for each in turns:
        epoch: dict[str, int] = defaultdict(int)
        for score in each["scores"]:
            if score["weights"] == "last":
                epoch[score["part"]] += 1
            weights = "last" if score["weights"] == "last" else "mean"
            key = (each["trial"], each["settings"]["settings"]["seed"], epoch[score["part"]], weights)
            cells[key][each["left_out"], score["part"]] = score["macro_f1"]
    lines = ["| trial | seed | epochs | weights | " + " | ".join(f"{g} | dev" for g in GROUPS) + " |"]
    lines.append("|---|---|---|---|" + "---|" * (2 * len(GROUPS)))
    for key, values in cells.items():
        row = [
            f"{values[at]:.3f}" if (at := (g, p)) in values else "" for g in GROUPS for p in ("left_out", "development")
        ]
        lines.append("| " + " | ".join(map(str, (*key, *row))) + " |")
    return "\n".join([*lines, "", *_spread(cells)])


def _spread(cells: dict[tuple, dict[tuple[str, str], float]]) -> list[str]:
    """One line a trial and group of sources that several seeds left out."""
    of_seeds: dict[tuple, list[float]] = defaultdict(list)
    for (trial, _, epochs, weights), values in cells.items():
        for (group, part), value in values.items():
            if part == "left_out":
                of_seeds[trial, group, epochs, weights].append(value)
    return [
        f"- {trial}, {group} left out, after {epochs} epochs, {weights} weights: {min(values):.3f} to "
        f"{max(values):.3f} over {len(values)} seeds"
        for (trial, group, epochs, weights), values in of_seeds.items()
        if len(values) > 1
    ]


if __name__ == "__main__":
    main()
