"""From a pair of texts to the tokens that a checkpoint reads, and what was cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refusal_core.classifier.result import TokensRead
from refusal_core.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerBase

MIDDLE = "middle"
LONGEST_FIRST = "longest-first"
TRUNCATIONS = (MIDDLE, LONGEST_FIRST)
PROMPT_SHARE = 0.25  # of the room, when both texts are long; the response decides the class

# Below this length the special tokens and one token of each text have no room.
SHORTEST_INPUT = 16
_SPECIAL_TOKENS_AT_MOST = 8
# Texts tokenized at once: the library keeps about 100 bytes a token until the texts are cut.
_CHARACTERS_AT_ONCE = 500_000


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

    def encode(
        self, prompts: Sequence[str], responses: Sequence[str], max_length: int, truncation: str = MIDDLE
    ) -> list[EncodedPair]:
        """One EncodedPair for each prompt and response. `max_length` counts special tokens, at least SHORTEST_INPUT."""
        return list(self.encode_each(prompts, responses, max_length, truncation))

    def encode_each(
        self, prompts: Sequence[str], responses: Sequence[str], max_length: int, truncation: str = MIDDLE
    ) -> Iterator[EncodedPair]:
        """As `encode`, a few texts at a time, so that memory is bounded by the longest pair."""
        if max_length < SHORTEST_INPUT:
            raise ValueError(f"max_length must be at least {SHORTEST_INPUT}, got {max_length}")
        room = max_length - self._frame.special_tokens
        for part in _parts([len(p) + len(r) for p, r in zip(prompts, responses, strict=True)]):
            first, second = self._tokens(prompts[part]), self._tokens(responses[part])
            for prompt, response in zip(first, second, strict=True):
                yield self._pair(prompt.ids, response.ids, room, truncation)

    def _tokens(self, texts: Sequence[str]) -> list[Encoding]:
        try:
            return self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        except BaseException as problem:  # plain Exception, for example without an unknown token; or a panic
            if not is_failure(problem):
                raise
            raise InputError(f"the checkpoint's tokenizer cannot read these texts ({problem})") from problem

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
        one, two = (tokenizer.encode(text, add_special_tokens=False) for text in ("a", "b"))
        pair = tokenizer.post_process(one, two, add_special_tokens=True)
        first = pair.special_tokens_mask.index(0)
        second = len(pair.ids) - pair.special_tokens_mask[::-1].index(0) - len(two)
        first_end = first + len(one)
        frame = cls(
            before=pair.ids[:first],
            between=pair.ids[first_end:second],
            after=pair.ids[second + len(two) :],
            first_type=pair.type_ids[first],
            second_type=pair.type_ids[second],
            between_types=pair.type_ids[first_end:second],
        )
        texts_once = pair.special_tokens_mask.count(0) == len(one) + len(two)
        if not texts_once or frame.around(one.ids, two.ids) != (pair.ids, pair.type_ids):
            raise ValueError("the tokenizer does not put the first text before the second")
        if frame.special_tokens > _SPECIAL_TOKENS_AT_MOST:
            raise ValueError(f"the tokenizer adds {frame.special_tokens} special tokens")
        return frame

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


def is_failure(problem: BaseException) -> bool:
    """Whether `problem` is an ordinary exception or a panic of the tokenizers library, which is none."""
    return isinstance(problem, Exception) or type(problem).__name__ == "PanicException"


def is_out_of_memory(problem: BaseException) -> bool:
    """Whether `problem` says that memory ran out; torch says it in a RuntimeError."""
    return isinstance(problem, MemoryError) or (isinstance(problem, RuntimeError) and "memory" in str(problem))


def _parts(sizes: Sequence[int]) -> Iterator[slice]:
    """Slices of neighbours, each of at most _CHARACTERS_AT_ONCE together or of one pair."""
    start, total = 0, 0
    for at, size in enumerate(sizes):
        if total + size > _CHARACTERS_AT_ONCE and at > start:
            yield slice(start, at)
            start, total = at, 0
        total += size
    if start < len(sizes):
        yield slice(start, len(sizes))


def cut_middle(prompt: int, response: int, room: int) -> tuple[int, int]:
    """Tokens to keep: the prompt gets what the response leaves, at least a quarter of the room."""
    keep_prompt = min(prompt, max(room - response, int(room * PROMPT_SHARE)))
    return keep_prompt, min(response, room - keep_prompt)


def cut_longest_first(prompt: int, response: int, room: int) -> tuple[int, int]:
    """Tokens to keep under `truncation=True`: the longer text is cut first, then both in turn."""
    short, long = min(prompt, response), max(prompt, response)
    if short + long <= room:
        return prompt, response
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short = room // 2
        long = short + room % 2
    return (short, long) if prompt <= response else (long, short)
