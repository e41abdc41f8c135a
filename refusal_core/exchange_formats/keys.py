"""What a file calls our columns, and the sentences for a file that does not have them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

from refusal_core.errors import InputError, one_line

CHAT_KEYS = ("messages", "conversations", "conversation")
_LIKELY = {  # names that other tools give to the two columns, the likelier first
    "prompt": ("prompt", "question", "instruction", "query", "user_prompt", "goal", "input", "request", "user"),
    "response": (
        "response", "completion", "answer", "output", "generation", "generated_text", "model_response", "model_output",
        "reply", "assistant", "prediction", "target",
    ),
    "id": ("id", "uid", "uuid", "index", "key"),
    "label": ("label", "true", "class", "category", "target", "gold"),
    "messages": (*CHAT_KEYS, "chat", "turns", "dialog", "dialogue"),
}  # fmt: skip
_RARELY = {("label", "category"), ("label", "target")}


@dataclass(frozen=True, slots=True)
class Keys:
    """The file's name for each of ours; `messages` None means messages, conversations or conversation."""

    prompt: str = "prompt"
    response: str = "response"
    id: str = "id"
    label: str = "label"
    messages: str | None = None

    @classmethod
    def of(cls, columns: Mapping[str, str] | None) -> Keys:
        """From our names to the file's. Raises InputError for a name that is not ours, or a column read twice."""
        columns = dict(columns or {})
        ours = [entry.name for entry in fields(cls)]
        for name, key in columns.items():
            if name not in ours:
                raise InputError(f'"{name}" cannot be mapped', where="--map", why=f"the names are {', '.join(ours)}")
            if not isinstance(key, str) or not key:
                raise InputError(f"{name} is mapped to nothing", where="--map", fix=f"write {name}=KEY")
        keys = cls(**columns)
        read = [key for key in (keys.prompt, keys.response, keys.id, keys.label, keys.messages) if key]
        for key in read:
            if read.count(key) > 1:
                raise InputError(
                    f'the column "{key}" is read twice', where="--map", fix="map each name to its own column"
                )
        return keys

    @property
    def chats(self) -> tuple[str, ...]:
        return (self.messages,) if self.messages else CHAT_KEYS

    @property
    def all(self) -> frozenset[str]:
        return frozenset((self.prompt, self.response, self.id, self.label, *self.chats))

    def held_by(self, found: Collection[str]) -> bool:
        """Whether the columns `found` can make an exchange: a chat, or a prompt with a response."""
        both = self.prompt in found and self.response in found and not self.messages
        return both or any(key in found for key in self.chats)

    def missing(self, found: Collection[str], *, name: str, what: str) -> InputError:
        """The error of the file `name` that has no exchanges in its columns `found`; `what` is "column" or "key"."""
        wanted = ("messages",) if self.messages else ("prompt", "response")
        return self.lacking([ours for ours in wanted if getattr(self, ours) not in found], found, name=name, what=what)

    def lacking(self, wanted: Collection[str], found: Collection[str], *, name: str, what: str) -> InputError:
        """The error of the file `name` without columns for `wanted` (our names); it suggests a mapping."""
        by_fold = {str(key).casefold(): str(key) for key in reversed(list(found))}
        maps = []
        for ours in wanted:
            likely = next((by_fold[key] for key in _LIKELY[ours] if key in by_fold), "NAME")
            maps.append(f"--map {shlex.quote(f'{ours}={one_line(likely, 60)}')}")
        return InputError(
            f"there is no {what} {' and no '.join(one_line(getattr(self, ours), 60) for ours in wanted)}",
            where=name,
            why=f"the {what}s found are {list_keys(found)}",
            fix=f"say which {what} it is: {' '.join(maps)}",
        )


def list_keys(found: Collection[str]) -> str:
    """The names, quoted where they are not plain words, at most twelve of them."""
    names = [one_line(str(name), 60) for name in list(found)[:12]]
    shown = ", ".join(name if name.isidentifier() else f'"{name}"' for name in names)
    return (shown or "none") + (f" and {len(found) - 12} more" if len(found) > 12 else "")


def likely_columns(found: Collection[str]) -> dict[str, str]:
    """Our names to those of `found` that most likely hold them, each used once; a chat only without both texts.

    A column called category or target may hold anything, so it is not taken for the label.
    """
    by_fold = {str(key).casefold(): str(key) for key in reversed(list(found))}
    columns: dict[str, str] = {}
    for ours in ("prompt", "response", "label", "id", "messages"):
        taken = set(columns.values())
        names = [name for name in _LIKELY[ours] if (ours, name) not in _RARELY]
        fitting = (by_fold[name] for name in names if name in by_fold and by_fold[name] not in taken)
        if match := next(fitting, None):
            columns[ours] = match
    if "messages" in columns:
        dropped = ("messages",) if {"prompt", "response"} <= columns.keys() else ("prompt", "response")
        columns = {ours: key for ours, key in columns.items() if ours not in dropped}
    return columns
