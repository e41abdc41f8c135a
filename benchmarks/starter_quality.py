"""How good the starter is: the numbers of its card, from the predictions that ship and, where asked, predicted again.

    python benchmarks/starter_quality.py                   the numbers, and whether the card says the same
    python benchmarks/starter_quality.py --predict         also predicts the corpus and the cases again, and compares
    python benchmarks/starter_quality.py --data DIR        also predicts the public validation rows of DIR again
    python benchmarks/starter_quality.py --complaints FILE also predicts public cases again
    python benchmarks/starter_quality.py --write           writes the card anew

Exit code 1 when the card or a prediction differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refusal_core.classifier import load
from refusal_core.classifier.checkpoint import STARTER_FOLDER
from refusal_core.commands.entry import Parser, guarded
from refusal_core.exchange_files import read_exchanges
from refusal_core.training import starter_run
from refusal_core.training.starter import public_rows
from refusal_core.training.starter_card import starter_card
from refusal_core.training.starter_numbers import RUN, Numbers, aims, count, numbers, read_figures, shipped_checkpoint

CARD = STARTER_FOLDER / "README.md"
CLOSE = 2e-4  # of a probability: another processor rounds otherwise


def run(args: argparse.Namespace) -> int:
    show(numbers())
    card = starter_card()
    if args.write:
        CARD.write_text(card, encoding="utf-8")
    differences = [] if CARD.read_text(encoding="utf-8") == card else ["the card is not what these files make"]
    if args.predict:
        differences += again()
    if args.data:
        differences += public_again(args.data)
    if args.complaints:
        differences += complaints_again(args.complaints)
    for difference in differences:
        print(f"DIFFERS: {difference}")
    if not differences:
        print("the card says the same")
    return 1 if differences else 0


def show(n: Numbers) -> None:
    for what, aim, found, met in aims(n):
        print(f"{what:<36} {found:<36} aim {aim}: {'reached' if met else 'missed'}")
    print(f"accuracy, held-out domains           {n.test.accuracy}; phrase matcher {n.matcher.accuracy}")
    for scores in n.test.classes:
        print(f"  {scores.label:<24} F1 {scores.f1}")
    print(f"public validation rows               {n.validation.accuracy}, macro F1 {n.validation.macro.f1:.3f}")
    print(f"development domains                  {n.development.accuracy}, macro F1 {n.development.macro.f1:.3f}")
    print(f"cases of our own                     {count(n.cases.accuracy)}")
    for name, each in n.ablations.items():
        print(f"{name:<36} {each.accuracy}, macro F1 {each.macro.f1:.3f}")
    for name, changed in n.changed.items():
        print(f"changed by {name:<25} {changed}")


def again() -> list[str]:
    """Where the starter's answers of today differ from those that ship."""
    shipped = starter_run.read_rows(RUN / shipped_checkpoint() / "predictions.jsonl")
    today = {(r.split, r.variant, r.id): r for r in starter_run.predict_parts(load("starter"))}
    found = []
    for row in shipped:
        other = today.pop((row.split, row.variant, row.id), None)
        where = f"{row.split} {row.variant} {row.id}"
        if other is None or other.true != row.true:
            found.append(f"{where} is not in the corpus as it is")
        elif other.label != row.label:
            found.append(f"{where}: {row.label} before, {other.label} now")
        elif max(abs(a - b) for a, b in zip(other.probabilities, row.probabilities, strict=True)) > CLOSE:
            found.append(f"{where}: another probability")
    print(f"predicted again: {len(shipped):,} rows, {len(found) + len(today)} differ")
    return found + [f"{key} has no prediction" for key in today]


def public_again(data: Path) -> list[str]:
    rows = public_rows(data, "validation").exchanges
    answers = load("starter").predict(rows)
    matrices = starter_run.matrices(rows, [str(answer.label) for answer in answers])
    was = read_figures(RUN)["validation"]
    print(f"public validation rows predicted again: {len(rows):,}")
    return [f"public rows of {source}" for source in {*was, *matrices} if was.get(source) != matrices.get(source)]


def complaints_again(file: Path) -> list[str]:
    rows = list(read_exchanges(file, need_label=True))
    answers = load("starter").predict(rows)
    now = Counter((str(row.extra["kind"]), row.label, a.label) for row, a in zip(rows, answers, strict=True))
    was = Counter((each["kind"], each["true"], each["label"]) for each in read_figures(RUN)["complaints"])
    print(f"public cases predicted again: {len(rows)}")
    return [f"public case of the kind {kind}" for kind, *_ in (now - was) + (was - now)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(description=__doc__.split("\n")[0])
    parser.add_argument("--predict", action="store_true", help="predict the corpus and the cases again")
    parser.add_argument("--data", type=Path, help="folder of the public rows")
    parser.add_argument("--complaints", type=Path, help="short public cases with a kind")
    parser.add_argument("--write", action="store_true", help="write the card anew")
    return guarded(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
