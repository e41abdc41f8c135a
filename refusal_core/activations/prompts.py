"""The prompts of an export: a row is a prompt or a chat, with a response, a label and a category where there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from refusal_core.chats import Turn, read_turns
from refusal_core.errors import InputError, one_line
from refusal_core.exchange_files import read_rows
from refusal_core.exchange_formats.json_values import JsonError, kind_of, parse
from refusal_core.exchange_formats.keys import CHAT_KEYS
from refusal_core.limits import EXPORT_PROMPTS, TEXT_CHARACTERS

COLUMNS = {
    "prompt": "prompt",
    "response": "response",
    "id": "id",
    "label": "label",
    "category": "category",
    "messages": "messages",
}


@dataclass(frozen=True)
class Prompt:
    """One row. `turns` end before the answer; `response` is the given one, None where there is none."""

    id: str
    turns: tuple[Turn, ...]
    response: str | None
    label: object | None
    category: str | None

    @property
    def text(self) -> str:
        """The last user turn, for tables and for the classifier."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user"), "")


@dataclass(frozen=True)
class Skipped:
    """A row that is left out, with the reason as one sentence."""

    id: str
    reason: str


def read_prompts(
    source: Path | str | BinaryIO, *, name: str | None = None, columns: Mapping[str, str] | None = None
) -> tuple[tuple[Prompt, ...], tuple[Skipped, ...]]:
    """The prompts of a JSONL, JSON, CSV or Parquet file, and the rows that hold none.

    A row has `prompt`, or a chat in `messages`, whose last assistant turn is the response. `columns` maps our names
    (prompt, response, id, label, category, messages) to the file's. A missing id becomes "line N". Raises InputError
    for a file without prompts, without a column that was mapped, with an id twice, and with over 100,000 rows.
    """
    keys = {**COLUMNS, **(columns or {})}
    prompts: list[Prompt] = []
    skipped: list[Skipped] = []
    found: dict[str, None] = {}
    name = name or Path(getattr(source, "name", source)).name
    for number, row in enumerate(read_rows(source, name=name, names=tuple(keys.values()))):
        if number >= EXPORT_PROMPTS:
            raise InputError(f"it has more than {EXPORT_PROMPTS:,} rows", where=name, fix="export a part at a time")
        if row.error is not None or row.values is None:
            skipped.append(Skipped(f"line {row.line}", row.error or "the row is empty"))
            continue
        found |= dict.fromkeys(row.values)
        try:
            prompts.append(_prompt(row.values, keys, row.line))
        except InputError as problem:
            skipped.append(Skipped(_id(row.values, keys, row.line), str(problem)))
    for ours in columns or {}:
        if keys[ours] not in found:
            raise InputError(
                f'it has no column "{keys[ours]}"',
                where=name,
                why=f"it has {', '.join(one_line(key, 40) for key in list(found)[:12]) or 'none'}",
                fix=f"correct --map {ours}=COLUMN",
            )
    if not prompts:
        raise InputError(
            "no row holds a prompt",
            where=name,
            why=skipped[0].reason if skipped else "there are no rows",
            fix="name the column by --map prompt=COLUMN",
        )
    _check_ids(prompts, name)
    return tuple(prompts), tuple(skipped)


def _prompt(row: Mapping[str, object], keys: Mapping[str, str], line: int) -> Prompt:
    response = row.get(keys["response"])
    if response is not None and not isinstance(response, str):
        raise InputError(f"{keys['response']} is {kind_of(response)}, not text")
    chat = next((row[key] for key in (keys["messages"], *CHAT_KEYS) if row.get(key)), None)
    prompt = row.get(keys["prompt"])
    if prompt is not None or chat is None:
        if not isinstance(prompt, str) or not prompt.strip():
            raise InputError(f"there is no text in {keys['prompt']}")
        turns = [Turn("user", prompt)]
    else:
        turns = read_turns(_parsed(chat))
        if turns and turns[-1].role == "assistant":
            response, turns = turns[-1].text, turns[:-1]
        if not any(turn.role == "user" and turn.text.strip() for turn in turns):
            raise InputError("the chat has no user turn with text before its end")
    if sum(len(turn.text) for turn in turns) + len(response or "") > TEXT_CHARACTERS:
        raise InputError(f"the texts are longer than {TEXT_CHARACTERS:,} characters")
    label, category = row.get(keys["label"]), row.get(keys["category"])
    return Prompt(
        id=_id(row, keys, line),
        turns=tuple(turns),
        response=response or None,
        label=None if label is None or str(label).strip() == "" else label,
        category=None if category is None else str(category).strip() or None,
    )


def _parsed(chat: object) -> object:
    if not isinstance(chat, str):
        return chat
    try:
        return parse(chat)
    except JsonError as problem:
        raise InputError(f"the chat is text, and {problem}") from None


def _id(row: Mapping[str, object], keys: Mapping[str, str], line: int) -> str:
    value = row.get(keys["id"])
    known = isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip()
    return str(value).strip() if known else f"line {line}"


def _check_ids(prompts: list[Prompt], name: str) -> None:
    seen: set[str] = set()
    for prompt in prompts:
        if prompt.id in seen:
            raise InputError(
                f'the id "{prompt.id}" stands twice',
                where=name,
                fix="give each prompt its own, or leave the column out",
            )
        seen.add(prompt.id)
