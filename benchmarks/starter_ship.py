"""From a finished training of `starter_train.py` to the starter as it ships: weights, run folder, card.

    python benchmarks/starter_ship.py --trained DIR --data DIR --complaints FILE [--into DIR]

DIR of --data holds the public rows, FILE short public cases with `kind`; of both only counts are kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refusal_core.classifier import load
from refusal_core.classifier.checkpoint import STARTER_FOLDER
from refusal_core.classifier.evaluation import FILES, evaluate, write_files
from refusal_core.commands import terminal
from refusal_core.commands.entry import Parser, guarded
from refusal_core.exchange_files import read_exchanges
from refusal_core.reports import to_json
from refusal_core.training import averaging, starter_run
from refusal_core.training.calibrate import write_temperature
from refusal_core.training.recipe import HOW
from refusal_core.training.reliability import reliability_svg
from refusal_core.training.starter import corpus_rows, starter_parts
from refusal_core.training.starter_card import starter_card
from refusal_core.training.starter_numbers import numbers

CHECKPOINT = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def run(args: argparse.Namespace) -> int:
    trained, into = args.trained, args.into
    run_folder = into / "run"
    how = json.loads((trained / HOW).read_text(encoding="utf-8"))
    for name in CHECKPOINT:
        shutil.copyfile(trained / name, into / name)
    shutil.rmtree(run_folder, ignore_errors=True)
    run_folder.mkdir(parents=True)
    shutil.copyfile(trained / "trainer_state.json", run_folder / "trainer_state.json")
    state = json.loads((trained / "trainer_state.json").read_text(encoding="utf-8"))
    is_mean = how["kept"].startswith("mean")
    shipped = f"checkpoint-{state['global_step' if is_mean else 'best_global_step']}"

    classifier = load(str(into))
    rows = starter_run.predict_parts(classifier)
    starter_run.write_rows(rows, run_folder / shipped / "predictions.jsonl")
    terminal.say(f"{shipped}: {len(rows):,} rows")
    for folder in _others(trained, shipped, f"checkpoint-{state['best_global_step']}"):
        with as_classifier(trained, folder, how["temperature"]) as other:
            found = starter_run.predict_parts(
                other, splits=(starter_run.TEST, starter_run.DEVELOPMENT, starter_run.CASES)
            )
        starter_run.write_rows(found, run_folder / folder.name / "predictions.jsonl")
        terminal.say(f"{folder.name}: {len(found):,} rows")

    rounding = _rounding(trained, trained / shipped, how, rows, is_mean)
    complaints = list(read_exchanges(args.complaints, need_label=True))
    figures = {
        "shipped": shipped,
        **{key: how[key] for key in ("settings", "kept", "temperature")},
        "rounding": rounding,
        **starter_run.figures(starter_parts(args.data), classifier, complaints),
    }
    (run_folder.parent / starter_run.FIGURES).write_text(to_json(figures, indent=1) + "\n", encoding="utf-8")
    with TemporaryDirectory() as folder:
        write_files(evaluate(classifier, corpus_rows("heldout").exchanges, split=starter_run.TEST), Path(folder))
        for name in FILES[:3]:
            shutil.copyfile(Path(folder, name), run_folder / name)
    (into / "reliability.svg").write_text(reliability_svg(numbers(run_folder).calibration), encoding="utf-8")
    shown = {3: "three", 4: "four"}[len(list(run_folder.glob("checkpoint-*")))]
    (run_folder / "README.md").write_text(_run_readme(shipped, is_mean, shown), encoding="utf-8")
    (into / "README.md").write_text(starter_card(run_folder), encoding="utf-8")
    return 0


def _others(trained: Path, shipped: str, best: str) -> list[Path]:
    """The first checkpoint, one in the middle, and the best single one where that does not ship."""
    found = sorted(trained.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    others = [path for path in found if path.name != shipped]
    return sorted({others[0], others[len(others) // 2], *(path for path in others if path.name == best)})


class as_classifier:
    """A checkpoint of the training as a classifier in float32, with the tokenizer that the Trainer leaves out."""

    def __init__(self, trained: Path, checkpoint: Path, temperature: float, mean: bool = False) -> None:
        self._trained, self._checkpoint, self._temperature, self._mean = trained, checkpoint, temperature, mean

    def __enter__(self):
        self._folder = TemporaryDirectory(prefix="checkpoint-")
        folder = Path(self._folder.name)
        for name in CHECKPOINT[2:]:
            shutil.copyfile(self._trained / name, folder / name)
        for name in CHECKPOINT[:2]:
            shutil.copyfile(self._checkpoint / name, folder / name)
        write_temperature(folder, self._temperature)
        if self._mean:
            from safetensors.torch import load_file, save_file

            tensors = load_file(folder / "model.safetensors")
            tensors.update(load_file(self._checkpoint / averaging.FILE))
            save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return load(str(folder))

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _rounding(trained: Path, checkpoint: Path, how: dict, rows: list, is_mean: bool) -> dict[str, int]:
    """How many labels of the unchanged rows half precision alters."""
    with as_classifier(trained, checkpoint, how["temperature"], is_mean) as exact:
        splits = (starter_run.TEST, starter_run.DEVELOPMENT, starter_run.CASES)
        before = starter_run.predict_parts(exact, splits=splits, variants=False)
    after = {(row.split, row.variant, row.id): row.label for row in rows}
    changed = sum(after[row.split, row.variant, row.id] != row.label for row in before)
    return {"changed": changed, "rows": len(before)}


def _run_readme(shipped: str, is_mean: bool, checkpoints: str) -> str:
    weights = "the mean of late weights, kept at the last step" if is_mean else "the weights of that step"
    return f"""# The starter's own run

What the training of the starter left behind, without weights: its curve (`trainer_state.json`), the evaluation of the
weights that ship on the corpus's held-out domains (`eval_results.json`, `classification_report.txt`,
`confusion_matrix.json`), and what {checkpoints} of its checkpoints answer (`checkpoint-N/predictions.jsonl`).

`{shipped}` is the one that ships: {weights}. The others are the weights of their step in float32. All outputs are
divided by the temperature that ships.

Rows: `split` is `test` (held-out domains), `development`, or `cases` (`refusal_core/training/cases.jsonl`); `variant`
names a perturbation of `refusal_core.perturb`; `group` is the minimal pair that a row belongs to. The splits `test,
prompt only` and `test, response only` leave one text out. `figures.json`
beside the card holds counts over rows that do not ship.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(description=__doc__.split("\n")[0])
    parser.add_argument("--trained", type=Path, required=True, help="output folder of starter_train.py")
    parser.add_argument("--data", type=Path, required=True, help="folder of the public rows")
    parser.add_argument("--complaints", type=Path, required=True, help="short public cases with a kind, JSON lines")
    parser.add_argument("--into", type=Path, default=STARTER_FOLDER, help="folder of the starter")
    return guarded(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
