"""The two suites that ship: the starter over its own checkpoints, and the answers of two small models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from refusal_core.errors import InputError
from refusal_core.scorecard.resolver import BesideSuite
from refusal_core.scorecard.suite import SuiteFile, read_suite

FOLDER = Path(__file__).with_name("samples")


@dataclass(frozen=True)
class Shipped:
    """`key` is stable (share links), `title` fits a button, `does` is one sentence."""

    key: str
    title: str
    does: str

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.key}.yaml"


SHIPPED: Mapping[str, Shipped] = {
    each.key: each
    for each in (
        Shipped(
            "starter",
            "Starter checkpoints",
            "Three checkpoints of the starter's training on the held-out part of the corpus, cases and perturbations.",
        ),
        Shipped(
            "answers",
            "Answers of two models",
            "Sixty answers each of two small models, labelled by the starter: how often they refuse, and in what.",
        ),
    )
}


def shipped(key: str) -> tuple[SuiteFile, BesideSuite]:
    """A suite that ships, and what its paths are relative to. Raises InputError for another key."""
    if key not in SHIPPED:
        raise InputError(f'there is no sample suite "{key}"', why=f"one of {', '.join(SHIPPED)} was expected")
    return read_suite(SHIPPED[key].path), BesideSuite(FOLDER)
