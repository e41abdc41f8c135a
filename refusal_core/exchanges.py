"""Exchange (a prompt with its response), and how one is read from a row, a list of chat messages, or pasted text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from refusal_core.chats import Turn, looks_like_message, pairs, read_transcript, read_turns
from refusal_core.errors import InputError, one_line
from refusal_core.exchange_formats.json_values import JsonError, kind_of, parse
from refusal_core.exchange_formats.keys import CHAT_KEYS, Keys, list_keys
from refusal_core.limits import TEXT_CHARACTERS

_ERROR_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt with its response; either text may be empty, and may hold lone surrogates of JSON escapes."""

    prompt: str
    response: str
    id: str | int | None = None
    label: str | None = None  # the true class, when the file has one; any text
    line: int | None = None  # from 1: line of the file (JSONL, CSV: where the record starts), row (Parquet, JSON array)
    extra: Mapping[str, object] = field(default_factory=dict)  # other columns as JSON values; floats may be NaN


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no exchange; it does not stop the rest. `error` is one sentence, at most 400 characters."""

    id: str | int | None
    line: int
    error: str


@dataclass(frozen=True, slots=True)
class Pasted:
    """What pasted text holds: exchanges, and the turns of the chat that they are of; a row of two texts has none."""

    exchanges: tuple[Exchange, ...]
    turns: tuple[Turn, ...] = ()


def from_messages(messages: object, *, every_turn: bool = False, id: str | int | None = None) -> list[Exchange]:
    """The exchange of a chat's last assistant turn, or with `every_turn` one for each, with ids `<id>#1`, `<id>#2`.

    `messages` as chats.read_turns takes them; the prompt as chats.pairs writes it; a user turn after the last
    assistant turn is ignored. Raises InputError for a chat that cannot be read, has no assistant turn, or makes a
    text that is too long.
    """
    return _of_turns(read_turns(messages), every_turn=every_turn, id=id)


def from_pasted(text: str) -> list[Exchange] | None:
    """The exchanges of `read_pasted`, which says what is read and what raises."""
    found = read_pasted(text)
    return None if found is None else list(found.exchanges)


def read_pasted(text: str) -> Pasted | None:
    """What pasted text holds: chat messages or one row as JSON, or a "User: ... Assistant: ..." transcript.

    Of a chat it is the exchange of the last assistant turn. None when it is plain text. Raises InputError when it is
    clearly a chat that cannot be read.
    """
    if len(text) > 2 * TEXT_CHARACTERS:
        return None
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        try:
            value = parse(text.lstrip("\ufeff"))
        except JsonError:
            return None
        if isinstance(value, dict):
            if isinstance(value.get("prompt"), str) and isinstance(value.get("response"), str):
                return Pasted(tuple(_checked(exchanges_of_row(value, line=1, keys=Keys(), number_ids=False))))
            value = next((value[key] for key in CHAT_KEYS if key in value), None)
        is_chat = isinstance(value, list) and value and all(map(looks_like_message, value))
        turns = read_turns(value) if is_chat else None
    else:
        turns = read_transcript(text)
    return None if turns is None else Pasted(tuple(_of_turns(turns)), tuple(turns))


def exchanges_of_row(
    row: Mapping[str, object],
    *,
    line: int,
    keys: Keys,
    every_turn: bool = False,
    need_label: bool = False,
    number_ids: bool = True,
) -> Iterator[Exchange | BadRow]:
    """What the row on `line` holds: one exchange or BadRow; with `every_turn` one for each assistant turn of a chat.

    An id that is neither text nor integer is missing; with `number_ids` the line number stands for it. A label
    belongs to the row's last response.
    """
    row_id = row_id_of(row, keys, line if number_ids else None)
    label = row.get(keys.label)
    if need_label and not (isinstance(label, str) and label.strip()):
        found = "is empty" if isinstance(label, str) else f"is {kind_of(label)}, not text"
        yield bad_row(row_id, line, f"{keys.label} {found}" if keys.label in row else f"there is no {keys.label}")
        return
    label = label if isinstance(label, str) and label.strip() else None
    chat = _chat_key(row, keys)
    used = {keys.id, keys.label, *((chat,) if chat else (keys.prompt, keys.response))}
    extra = {key: value for key, value in row.items() if key not in used}
    if chat is None:
        if fault := _text_fault(row, keys):
            yield bad_row(row_id, line, fault)
        else:
            yield Exchange(row[keys.prompt], row[keys.response], row_id, label, line, extra)
        return
    try:
        turns = read_turns(_messages(row[chat], chat))
        last = sum(turn.role == "assistant" for turn in turns)
        for number, prompt, response in pairs(turns, every_turn=every_turn):
            its_id = _turn_id(row_id, number) if every_turn else row_id
            its_label = label if number == last else None
            if fault := _too_long(prompt, response):
                yield bad_row(its_id, line, fault)
            elif need_label and its_label is None:
                yield bad_row(its_id, line, f"{keys.label} belongs to the last turn of the chat, not to this one")
            else:
                yield Exchange(prompt, response, its_id, its_label, line, extra)
    except InputError as error:
        yield bad_row(row_id, line, str(error))


def _of_turns(turns: Sequence[Turn], *, every_turn: bool = False, id: str | int | None = None) -> list[Exchange]:
    found = []
    for number, prompt, response in pairs(turns, every_turn=every_turn):
        if fault := _too_long(prompt, response):
            raise InputError(fault, where=f"turn {number}")
        found.append(Exchange(prompt, response, id=_turn_id(id, number) if every_turn else id))
    return found


def row_id_of(row: Mapping[str, object], keys: Keys, missing: int | None) -> str | int | None:
    """The row's id when it is text or an integer, otherwise `missing`."""
    found = row.get(keys.id)
    return found if isinstance(found, str | int) and not isinstance(found, bool) else missing


def bad_row(row_id: str | int | None, line: int, error: str) -> BadRow:
    """A BadRow with `error` as one bounded sentence."""
    error = one_line(error, _ERROR_CHARACTERS - 1)
    return BadRow(row_id, line, error if error.endswith((".", "…")) else f"{error}.")


def _chat_key(row: Mapping[str, object], keys: Keys) -> str | None:
    """The key of the row's chat; None when it has prompt and response, which go before a chat unless one is mapped."""
    chat = next((key for key in keys.chats if row.get(key) is not None), None)
    if keys.messages or chat is None:
        return keys.messages if keys.messages in row else chat
    texts = row.get(keys.prompt), row.get(keys.response)
    both = keys.prompt in row and keys.response in row
    return None if both and texts != (None, None) else chat


def _text_fault(row: Mapping[str, object], keys: Keys) -> str | None:
    wanted = [keys.messages] if keys.messages else [keys.prompt, keys.response]
    missing = [key for key in wanted if key not in row]
    if missing:
        return f"there is no {' and no '.join(missing)}; the keys found are {list_keys(row)}"
    for key in (keys.prompt, keys.response):
        if not isinstance(row[key], str):
            return f"{key} is {kind_of(row[key])}, not text"
    return _too_long(row[keys.prompt], row[keys.response])


def _too_long(prompt: str, response: str) -> str | None:
    for name, text in (("prompt", prompt), ("response", response)):
        if len(text) > TEXT_CHARACTERS:
            return f"the {name} has {len(text):,} characters; at most {TEXT_CHARACTERS:,} are read"
    return None


def _messages(value: object, key: str) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse(value)
    except JsonError as error:
        raise InputError(f"{key} is text, and {error}") from None


def _turn_id(row_id: str | int | None, number: int) -> str:
    return f"{'' if row_id is None else row_id}#{number}"


def _checked(found: Iterator[Exchange | BadRow]) -> Iterator[Exchange]:
    for item in found:
        if isinstance(item, BadRow):
            raise InputError(item.error)
        yield item
