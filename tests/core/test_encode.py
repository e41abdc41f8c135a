"""Pairs to tokens: the same as the checkpoint's own tokenizer, and what each way of cutting keeps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core.classifier import encode
from refusal_core.classifier.checkpoint import load_checkpoint
from refusal_core.classifier.encode import (
    LONGEST_FIRST,
    MIDDLE,
    SHORTEST_INPUT,
    PairEncoder,
    cut_longest_first,
    cut_middle,
)
from refusal_core.errors import InputError
from tests.checkpoints import make_checkpoint

STYLES = ("bert", "modernbert", "roberta", "byte-level", "unigram", "bare")
SENTENCES = [
    "I'm sorry, but I can't help with that.",
    "Sure! Here is a list of steps.",
    "What do you mean by 'it'?",
] * 20


def trained(style: str):
    """A tokenizer trained on a few sentences: byte-level as RoBERTa's, Unigram as XLM-R's, or bare."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    if style == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=120, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=320, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    if style != "bare":
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    made = {}
    for style in STYLES[:3]:
        made[style] = load_checkpoint(
            str(make_checkpoint(tmp_path_factory.mktemp(style) / "it", architecture=style))
        ).tokenizer
    return made | {style: trained(style) for style in STYLES[3:]}


@pytest.fixture(scope="module")
def encoders(tokenizers):
    return {style: PairEncoder(tokenizer) for style, tokenizer in tokenizers.items()}


# A response is never empty here: the library reads an empty second text as none, and Classifier does not ask.
TEXT = st.text(st.sampled_from("ab c'é🙂日\n.[SEP]</s>"), max_size=60) | st.sampled_from(SENTENCES)


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=60)
@given(prompt=TEXT, response=TEXT.filter(bool), how=st.sampled_from([MIDDLE, LONGEST_FIRST]))
def test_uncut_is_what_the_tokenizer_gives(tokenizers, encoders, style, prompt, response, how):
    expected = tokenizers[style](prompt, response, return_token_type_ids=True)
    (pair,) = encoders[style].encode([prompt], [response], 1_000, how)
    assert pair.ids == expected["input_ids"]
    assert pair.type_ids == expected["token_type_ids"]
    assert pair.read.input == len(pair.ids) and not pair.read.truncated


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=60)
@given(prompt=st.integers(0, 60), response=st.integers(1, 60), length=st.integers(SHORTEST_INPUT, 70))
def test_longest_first_is_the_tokenizers_own_truncation(tokenizers, encoders, style, prompt, response, length):
    prompt, response = "a b " * (prompt // 2) + "a " * (prompt % 2), "help c " * (response // 2) + "c " * (response % 2)
    expected = tokenizers[style](prompt, response, truncation=True, max_length=length, return_token_type_ids=True)
    (pair,) = encoders[style].encode([prompt], [response], length, LONGEST_FIRST)
    assert pair.ids == expected["input_ids"]
    assert pair.type_ids == expected["token_type_ids"]


@given(prompt=st.integers(0, 300), response=st.integers(0, 300), room=st.integers(8, 200))
def test_cuts_use_the_room_and_no_more(prompt, response, room):
    for cut in (cut_middle, cut_longest_first):
        kept_prompt, kept_response = cut(prompt, response, room)
        assert 0 <= kept_prompt <= prompt and 0 <= kept_response <= response
        assert kept_prompt + kept_response == min(room, prompt + response)
    kept_prompt, kept_response = cut_middle(prompt, response, room)
    assert kept_response == response or kept_response >= room - max(room // 4, 1)
    assert kept_prompt == prompt or kept_prompt >= room // 4


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=40)
@given(prompt=st.integers(0, 80), response=st.integers(0, 80), length=st.integers(SHORTEST_INPUT, 60))
def test_middle_keeps_both_ends_of_the_response_and_the_end_of_the_prompt(
    tokenizers, encoders, style, prompt, response, length
):
    def tokens(text: str) -> list[int]:
        return tokenizers[style](text, add_special_tokens=False)["input_ids"]

    texts = " ".join("abcdefgh"[i % 8] for i in range(prompt)), " ".join("stuvwxyz"[i % 8] for i in range(response))
    first, second = map(tokens, texts)
    (pair,) = encoders[style].encode([texts[0]], [texts[1]], length)
    read = pair.read
    assert len(pair.ids) == len(pair.type_ids) == read.input <= length
    assert (read.prompt_total, read.response_total) == (len(first), len(second))
    head = (read.response_read + 1) // 2
    kept = second[:head] + second[len(second) - read.response_read + head :]
    ends = first[len(first) - read.prompt_read :]
    special = set(tokenizers[style].all_special_ids) - {tokenizers[style].unk_token_id}
    assert [token for token in pair.ids if token not in special] == ends + kept
    assert read.truncated == (len(ends) < len(first) or len(kept) < len(second))
    if read.truncated:
        assert read.input == length


def test_last_line_of_a_very_long_response_is_read(tokenizers, encoders):
    response = "sure that is the list . " * 5_000 + "sorry i cannot help"
    ends = tokenizers["bert"]("sorry i cannot help", add_special_tokens=False)["input_ids"]
    (middle,) = encoders["bert"].encode(["do it"], [response], 128)
    (plain,) = encoders["bert"].encode(["do it"], [response], 128, LONGEST_FIRST)
    assert middle.ids[-len(ends) - 1 : -1] == ends
    assert plain.ids[-len(ends) - 1 : -1] != ends
    assert middle.read.response_total == plain.read.response_total == 60_004


def test_many_pairs_are_as_each_alone(encoders, monkeypatch):
    monkeypatch.setattr(encode, "_CHARACTERS_AT_ONCE", 50)
    prompts = ["a" * (i * 7 % 90) for i in range(40)]
    responses = ["b c " * (i * 5 % 30) for i in range(40)]
    together = encoders["bert"].encode(prompts, responses, 32)
    assert together == [encoders["bert"].encode([p], [r], 32)[0] for p, r in zip(prompts, responses, strict=True)]
    assert encoders["bert"].encode([], [], 32) == []


@given(st.lists(st.integers(0, 900_000), max_size=30))
def test_parts_hold_every_text_once_and_are_small(sizes):
    parts = list(encode._parts(sizes))
    assert [i for part in parts for i in range(len(sizes))[part]] == list(range(len(sizes)))
    assert all(sum(sizes[part]) <= encode._CHARACTERS_AT_ONCE or part.stop - part.start == 1 for part in parts)


def test_the_checkpoints_own_tokenizer_is_left_as_it_was(tokenizers):
    tokenizer = tokenizers["bert"]
    expected = tokenizer("a", "b c", padding="max_length", max_length=20, truncation=True)
    PairEncoder(tokenizer).encode(["a"], ["b"], 16)
    assert tokenizer("a", "b c", padding="max_length", max_length=20, truncation=True) == expected


def test_too_short_a_length_is_an_error_of_the_caller(encoders):
    with pytest.raises(ValueError, match="at least 16"):
        encoders["bert"].encode(["a"], ["b"], SHORTEST_INPUT - 1)


PAIRINGS = [
    ("[CLS] $B $A [SEP]", "first text before the second"),
    ("[CLS] $A $A $B", "first text before the second"),
    ("$A $B [SEP] $B", "first text before the second"),
    ("[SEP] " * 9 + "$A $B", "9 special tokens"),
]


@pytest.mark.parametrize(("pair", "why"), PAIRINGS)
def test_a_tokenizer_that_pairs_otherwise_is_refused(tokenizers, pair, why):
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    backend = PairEncoder(tokenizers["bert"])._tokenizer
    backend.post_processor = processors.TemplateProcessing(
        single="$A", pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    with pytest.raises(ValueError, match=why):
        PairEncoder(PreTrainedTokenizerFast(tokenizer_object=backend))


def test_a_text_that_the_tokenizer_cannot_read_is_an_input_error():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="none"))
    with pytest.raises(InputError, match="cannot read these texts"):
        PairEncoder(PreTrainedTokenizerFast(tokenizer_object=words)).encode(["z"], ["a"], 16)
