"""A checkpoint that answers exchanges, through the cache: each one is classified once, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from refusal_core.classifier.checkpoint import STARTER, STARTER_FOLDER
from refusal_core.classifier.folder import read_folder
from refusal_core.classifier.predict import Classifier, load
from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job
from refusal_core.scorecard.cache import Answer, AnswerCache

CHUNK = 256  # exchanges kept at once: what a kill may cost

Load = Callable[[str], Classifier]


class Reader:
    """One checkpoint by name. It is loaded only when an answer is missing. Raises InputError as `load` does."""

    def __init__(self, name: str, cache: AnswerCache, load: Load = load) -> None:
        self.name, self._cache, self._load = name, cache, load
        self._classifier: Classifier | None = None
        self.digest = self._quick_digest() or self._loaded().info.digest
        known = cache.labels(self.digest)
        if known is None:
            info = self._loaded().info
            known = info.labels, info.notes
            cache.put_labels(self.digest, *known)
        self.labels, self.notes = known

    def missing(self, wanted: Mapping[bytes, Exchange]) -> tuple[dict[bytes, Answer], dict[bytes, Exchange]]:
        """What the cache knows of `wanted` (by text digest), and what it does not."""
        found = self._cache.get(self.digest, list(wanted))
        return found, {key: exchange for key, exchange in wanted.items() if key not in found}

    def classify(self, missing: Mapping[bytes, Exchange], job: Job) -> dict[bytes, Answer]:
        """Answers of `missing`, kept chunk by chunk. In order of length: what is computed together is then alike."""
        order = sorted(missing, key=lambda key: (len(missing[key].prompt) + len(missing[key].response), key))
        answers: dict[bytes, Answer] = {}
        for at in range(0, len(order), CHUNK):
            keys = order[at : at + CHUNK]
            given = self._loaded().predict([missing[key] for key in keys], job=job)
            fresh = {
                key: Answer(a.label, tuple(a.probabilities.values()) if a.probabilities is not None else None, a.error)
                for key, a in zip(keys, given, strict=True)
            }
            self._cache.put(self.digest, fresh)
            answers |= fresh
        return answers

    def release(self) -> None:
        """Let the weights go; a later question loads them again."""
        self._classifier = None

    def _loaded(self) -> Classifier:
        if self._classifier is None:
            self._classifier = self._load(self.name)
        return self._classifier

    def _quick_digest(self) -> str | None:
        """The digest without loading, for a folder on this machine."""
        folder = STARTER_FOLDER if self.name == STARTER else Path(self.name)
        return read_folder(folder, folder.name).digest() if folder.is_dir() else None
