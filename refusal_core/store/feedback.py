"""Feedback: one exchange, what the model answered, what a person says is right, who and when."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from refusal_core.errors import InputError
from refusal_core.limits import NAME_CHARACTERS, TEXT_CHARACTERS

ANONYMOUS = "not named"


@dataclass(frozen=True, slots=True)
class Feedback:
    """One person's word on one exchange.

    Texts are kept as the classifier reads them: a lone surrogate becomes U+FFFD, NUL a space. Raises InputError for a
    blank right label, texts or names that are too long, or probabilities that are not finite.
    """

    prompt: str
    response: str
    right: str  # the right label
    label: str | None = None  # the model's answer; None when it had none
    probabilities: Mapping[str, float] = field(default_factory=dict)  # class to number, 0 to 1, in the model's order
    checkpoint: str = ""  # the name that the user gave it
    digest: str = ""  # the checkpoint's SHA-256, hexadecimal
    item: str | int | None = None  # the exchange's own id; kept as text
    source: str = ""  # the file's name, or "" for a single exchange
    who: str = ANONYMOUS
    note: str = ""
    when: datetime.datetime | None = None  # with a time zone; kept in UTC; None: set when it is stored
    id: int | None = None  # the store's number, from 1; None before it is stored

    def __post_init__(self) -> None:
        for name in ("prompt", "response", "note"):
            text = plain(getattr(self, name))
            if len(text) > TEXT_CHARACTERS:
                raise InputError(
                    f"the {name} has {len(text):,} characters", why=f"at most {TEXT_CHARACTERS:,} are kept"
                )
            object.__setattr__(self, name, text)
        for name in ("right", "label", "checkpoint", "digest", "source", "who", "item"):
            value = getattr(self, name)
            if value is None:
                continue
            text = " ".join(plain(str(value)).split()) if name in ("right", "who") else plain(str(value))
            if len(text) > NAME_CHARACTERS and name in ("right", "who"):
                raise InputError(f"{name} has {len(text):,} characters", why=f"at most {NAME_CHARACTERS} are kept")
            object.__setattr__(self, name, text)
        if not self.right:
            raise InputError("the right label is blank", fix="choose one of the classes")
        if not self.who:
            object.__setattr__(self, "who", ANONYMOUS)
        probabilities = {plain(str(name)): float(p) for name, p in self.probabilities.items()}
        if not all(math.isfinite(p) for p in probabilities.values()):
            raise InputError("a probability is not a finite number")
        object.__setattr__(self, "probabilities", probabilities)
        if self.when is not None:
            if self.when.tzinfo is None:
                raise ValueError("`when` needs a time zone")
            object.__setattr__(self, "when", self.when.astimezone(datetime.UTC))

    @property
    def exchange(self) -> str:
        """SHA-256 (hexadecimal) of prompt and response: equal for equal exchanges."""
        digest = hashlib.sha256()
        for text in (self.prompt, self.response):
            encoded = text.encode("utf-8")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
        return digest.hexdigest()


def plain(text: str) -> str:
    """`text` as every database takes it: lone surrogates become U+FFFD, NUL a space."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", " ")
