"""Training runs that come with the project, to look at before there is one of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
_STARTER = _HERE.parents[1] / "classifier" / "starter" / "run"


@dataclass(frozen=True)
class RunSample:
    """`key` is stable (share links), `title` fits a button, `what` says where the files come from."""

    key: str
    title: str
    folder: Path
    what: str


_ALL = (
    RunSample(
        "starter",
        "The starter's own training",
        _STARTER,
        "The run folder of the classifier that comes with the project: curves, checkpoints and their predictions.",
    ),
    RunSample(
        "card",
        "A published model card",
        _HERE / "refusal-detector-card",
        "The figures that the public card of VINAY-UMRETHE/refusal-detector states of its test split, typed from it.",
    ),
)


def samples() -> tuple[RunSample, ...]:
    """Those that are there, the fullest first."""
    return tuple(sample for sample in _ALL if sample.folder.is_dir())
