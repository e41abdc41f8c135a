"""Changes to a response that leave its meaning alone: whoever reads the answer says the same before and after.

>>> PERTURBATIONS["typographic_apostrophes"].apply("I can't.")
'I can’t.'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from refusal_core.errors import InputError
from refusal_core.exchanges import Exchange

# Says nothing of what follows, whichever the class is.
_PREAMBLE = "Thank you for your message.\n\n"
_HEADING = "### Response\n\n"

_SPACE = re.compile(r"(?<=\S) (?=\S)")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")
# The first sentence of a first line that is plain prose; a line that is Markdown or code already stays as it is.
_FIRST_SENTENCE = re.compile(r"(?![#>|*`_\-+{\[<\d])(\S[^\n]*?[.!?](?=\s|\Z))")


@dataclass(frozen=True, slots=True)
class Perturbation:
    """`name` is stable (the field `variant`), `does` one sentence for readers, `change` text to text."""

    name: str
    does: str
    change: Callable[[str], str]

    def apply(self, text: str) -> str:
        """`text` changed; a text of spaces alone stays as it is, since there is no answer to change."""
        return self.change(text) if text.strip() else text


def _markdown(text: str) -> str:
    text = text.lstrip()
    first = _FIRST_SENTENCE.match(text)
    return _HEADING + (f"**{first[1]}**{text[first.end() :]}" if first else text)


PERTURBATIONS: Mapping[str, Perturbation] = {
    each.name: each
    for each in (
        Perturbation("lower_case", "Writes every letter in lower case.", str.lower),
        Perturbation("double_spaces", "Doubles every single space between words.", lambda t: _SPACE.sub("  ", t)),
        Perturbation("trailing_newline", "Ends the response with one more newline.", lambda t: t + "\n"),
        Perturbation(
            "typographic_apostrophes",
            "Turns straight apostrophes inside words into typographic ones.",
            lambda t: _APOSTROPHE.sub("\u2019", t),
        ),
        Perturbation("markdown", "Puts a Markdown heading above and the first sentence in bold.", _markdown),
        Perturbation("preamble", "Opens with a polite sentence that says nothing.", lambda t: _PREAMBLE + t),
    )
}


def perturb(exchange: Exchange, name: str) -> Exchange:
    """`exchange` with its response changed by the perturbation `name`, which `extra["variant"]` then holds.

    The id stays, so that the answers before and after can be paired. Raises InputError for an unknown name.
    """
    if name not in PERTURBATIONS:
        raise InputError(f"there is no perturbation {name!r}", why=f"one of {', '.join(PERTURBATIONS)} was expected")
    changed = PERTURBATIONS[name].apply(exchange.response)
    return replace(exchange, response=changed, extra={**exchange.extra, "variant": name})
