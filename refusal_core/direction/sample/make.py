"""Makes the sample's two NPZ files again: `python -m refusal_core.direction.sample.make MODEL`, see README.md.

MODEL is the folder or .gguf file of SmolLM2-135M-Instruct. The same file, versions and machine give the same bytes.
"""

from __future__ import annotations

import argparse
import sys

from refusal_core.activations.export import export
from refusal_core.activations.export_settings import ExportSettings, Labels
from refusal_core.activations.load_model import load_language_model
from refusal_core.activations.prompts import read_prompts
from refusal_core.direction.meaning import HARMFUL
from refusal_core.direction.sample import sample_files

LAYERS = (10, 15, 20, 25)
TEST = frozenset({"medicine", "driving", "travel", "news", "family", "food"})
MEANING = "the prompt is sensitive (its author's label; the model's own answer plays no part)"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make", description=__doc__.split("\n")[0])
    parser.add_argument("model", help="folder or .gguf file of SmolLM2-135M-Instruct")
    model = load_language_model(parser.parse_args(arguments).model)
    train, test, table = sample_files()
    prompts, _ = read_prompts(table)
    labels = Labels(meaning=MEANING, means=HARMFUL.key)
    for path, in_test in ((train, False), (test, True)):
        own = [prompt for prompt in prompts if (prompt.category in TEST) == in_test]
        done = export(own, model, path, ExportSettings(layers=LAYERS, dtype="float16"), labels)
        print(f"{path.name}: {done.shape}, labels {done.label_counts}, {path.stat().st_size:,} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
