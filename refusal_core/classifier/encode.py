"""From a pair of texts to the tokens that a checkpoint reads, and what was cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refusal_core.classifier.result import TokensRead

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

MIDDLE = "middle"
LONGEST_FIRST = "longest-first"
TRUNCATIONS = (MIDDLE, LONGEST_FIRST)
PROMPT_SHARE = 0.25  # of the room, when both texts are long; the response decides the class

# Below this length the special tokens and one token of each text have no room.
SHORTEST_INPUT = 16


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """One model input: token ids, segment ids (both of length `read.input`) and what was read."""

    ids: list[int]
    type_ids: list[int]
    read: TokensRead


class PairEncoder:
    """Pairs texts as the checkpoint's tokenizer does: prompt first, response second.

    truncation "middle" keeps the head and the tail of a long response and the end of a long prompt, so that a refusal
    in the last line is seen. "longest-first" is the tokenizer's own `truncation=True`, which cuts the ends.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        from tokenizers import Tokenizer

        # A copy, since padding and truncation are set on the tokenizer itself and others use that one too.
        self._tokenizer = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._frame = _Frame.of(self._tokenizer)

    def encode(self, prompts: Sequence[str], responses: Sequence[str], max_length: int, truncation: str = MIDDLE) -> list[EncodedPair]:
        """One EncodedPair for each prompt and response. `max_length` counts special tokens, at least SHORTEST_INPUT."""
        if max_length < SHORTEST_INPUT:
            raise ValueError(f"max_length must be at least {SHORTEST_INPUT}, got {max_length}")
        room = max_length - self._frame.special_tokens
        first = self._tokenizer.encode_batch(list(prompts), add_special_tokens=False)
        second = self._tokenizer.encode_batch(list(responses), add_special_tokens=False)
        return [self._pair(p.ids, r.ids, room, truncation) for p, r in zip(first, second, strict=True)]

    def _pair(self, prompt: list[int], response: list[int], room: int, truncation: str) -> EncodedPair:
        if truncation == MIDDLE:
            keep_prompt, keep_response = cut_middle(len(prompt), len(response), room)
            head = (keep_response + 1) // 2
            tail = keep_response - head
            read_prompt = prompt[len(prompt) - keep_prompt :]
            read_response = response[:head] + response[len(response) - tail :]
        else:
            keep_prompt, keep_response = cut_longest_first(len(prompt), len(response), room)
            read_prompt, read_response = prompt[:keep_prompt], response[:keep_response]
        ids, type_ids = self._frame.around(read_prompt, read_response)
        return EncodedPair(ids, type_ids, TokensRead(keep_prompt, len(prompt), keep_response, len(response), len(ids)))


@dataclass(frozen=True)
class _Frame:
    """The special tokens that the tokenizer's post-processor puts before, between and after two texts."""

    before: list[int]
    between: list[int]
    after: list[int]
    first_type: int
    second_type: int
    between_types: list[int]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> _Frame:
        """Read off one processed pair: cutting and merging the library's own Encodings keeps every piece cut off."""
        texts = [tokenizer.encode(text, add_special_tokens=False) for text in ("a", "b")]
        pair = tokenizer.post_process(*texts, add_special_tokens=True)
        first = pair.special_tokens_mask.index(0)
        second = len(pair.ids) - pair.special_tokens_mask[::-1].index(0) - len(texts[1])
        first_end = first + len(texts[0])
        return cls(
            before=pair.ids[:first],
            between=pair.ids[first_end:second],
            after=pair.ids[second + len(texts[1]) :],
            first_type=pair.type_ids[first],
            second_type=pair.type_ids[second],
            between_types=pair.type_ids[first_end:second],
        )

    @property
    def special_tokens(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)

    def around(self, first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
        """Token ids and segment ids of the whole input."""
        ids = self.before + first + self.between + second + self.after
        type_ids = (
            [self.first_type] * (len(self.before) + len(first))
            + self.between_types
            + [self.second_type] * (len(second) + len(self.after))
        )
        return ids, type_ids


def cut_middle(prompt: int, response: int, room: int) -> tuple[int, int]:
    """Tokens of prompt and response to keep: the prompt gets what the response leaves, at least a quarter of the room."""
    keep_prompt = min(prompt, max(room - response, int(room * PROMPT_SHARE)))
    return keep_prompt, min(response, room - keep_prompt)


def cut_longest_first(prompt: int, response: int, room: int) -> tuple[int, int]:
    """Tokens to keep under `truncation=True`: the longer text is cut first, then both in turn (tokenizers' LongestFirst)."""
    short, long = min(prompt, response), max(prompt, response)
    if short + long <= room:
        return prompt, response
    if short > room:
        long = short
    else:
        long = max(short, room - short)
    if short + long > room:
        short = room // 2
        long = short + room % 2
    return (short, long) if prompt <= response else (long, short)
