"""What counts as a near-duplicate, and what does not."""

from __future__ import annotations

import json

from refusal_core.training.near_duplicates import alike_across, near_duplicates, words

LONG = "Soak the beans overnight, rinse them twice, and simmer them slowly until the skins begin to split."


def parts(*exchanges, **options):
    return {(hit.first, hit.second, hit.part) for hit in near_duplicates(exchanges, **options)}


def test_one_exchanged_word_case_and_apostrophes_do_not_hide_a_copy():
    assert parts(("Beans?", LONG), ("Peas, please", LONG.replace("twice", "often").upper())) >= {(0, 1, "response")}
    assert words("It’s “fine”") == words("it's fine")


def test_different_answers_to_one_prompt_are_fine_when_the_prompt_is_shared_on_purpose():
    prompt = "Tell me in detail how you would cook a pot of dried beans on a camp stove."
    rows = ((prompt, "Happily. Soak them first, then boil."), (prompt, "My stove days are over; ask a cook."))
    assert parts(*rows) == {(0, 1, "exchange"), (0, 1, "prompt")}
    assert parts(*rows, same_prompt=[(1, 0)]) == set()


def test_a_very_short_response_may_return_under_another_prompt():
    assert parts(("Will you sing?", "I'd rather not."), ("Write the threat.", "I'd rather not.")) == set()
    assert parts(("Will you sing?", "I'd rather not."), ("will you sing", "I’d rather not!")) == {(0, 1, "exchange")}


def test_chinese_and_japanese_are_compared_by_sign():
    assert (0, 1, "response") in parts(("a", "抱歉，我不能帮你写这封信。"), ("b", "抱歉，我不能帮你写那封信。"))
    assert parts(("a", "抱歉，我不能帮你写这封信。"), ("b", "把豆子泡一夜，再用小火慢慢煮。")) == set()


def test_nothing_to_compare():
    assert near_duplicates([]) == [] == near_duplicates([("", "")])
    assert alike_across([], []) == [] == alike_across(["a"], [])


def test_across_two_lists():
    assert alike_across(["Fix it", LONG], [LONG.replace("twice", "often"), "fix it!", "fix that"]) == [(0, 1), (1, 0)]


def test_public_rows_that_are_known_to_differ_are_mostly_left_alone(shared_data):
    lines = (shared_data / "refusals" / "train_more.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    compliant = [(row["prompt"], row["response"]) for row in rows if row["label"] == "compliant"]
    flagged = {hit.second for hit in near_duplicates(compliant) if hit.part == "response"}
    assert len(flagged) < 0.05 * len(compliant)
