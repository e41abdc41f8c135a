"""The sample: activations of a small instruct model on prompts written for this project; see README.md."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
# Layer 20 of 30, two thirds of the way, which was settled before any result was looked at.
LAYER_INDEX = 2


def sample_files() -> tuple[Path, Path, Path]:
    """The training and the test NPZ (activations [examples, layers, dimensions]) and the table of prompts (JSONL)."""
    return FOLDER / "train.npz", FOLDER / "test.npz", FOLDER / "prompts.jsonl"
