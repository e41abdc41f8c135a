"""The Playground's own functions, without a page."""

import json
import subprocess
import sys

import pytest

from refusal_core.classifier import load
from refusal_core.classifier.matcher import Match
from refusal_core.classifier.result import CheckpointInfo, Classification, TokensRead
from refusal_core.errors import InputError
from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job
from refusal_core.labels import FOLDS, LABELS
from tests.app.conftest import ROOT
from ui import playground
from ui.checkpoints import STARTER_CHOICE, Choice
from ui.playground import Asked, Result, Turn, agreement, command, read_boxes, remarks, verdict

FOLD = FOLDS["full-partial"]
CHAT = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Fix it"},
    {"role": "assistant", "content": "Which one?"},
]
ANY = Exchange("p", "r")
INFO = CheckpointInfo("starter", "starter", None, "0" * 64, LABELS, 128, 128, "Bert", 10)


def said(tokens=None, **probabilities) -> Classification:
    whole = dict.fromkeys(LABELS, 0.0) | probabilities if set(probabilities) <= set(LABELS) else probabilities
    return Classification(1, max(whole, key=whole.get), whole, tokens)


def result(answer: Classification, exchange=ANY, choice=STARTER_CHOICE, info=INFO) -> Result:
    turn = Turn(exchange, answer, Match("compliant", None))
    return Result(Asked(exchange), turn, choice, info, 0.012, None)


def texts(asked: Asked) -> tuple[str, str]:
    return asked.exchange.prompt, asked.exchange.response


def test_plain_boxes_are_taken_as_they_are():
    asked = read_boxes("Why?", "Because.\n")
    assert texts(asked) == ("Why?", "Because.\n") and not asked.note and asked.assistant_turns == 0


@pytest.mark.parametrize("boxes", [("", "{}"), ("{}", "  \n")])
@pytest.mark.parametrize("pasted", [json.dumps(CHAT), json.dumps({"messages": CHAT})])
def test_a_chat_in_either_box_is_split(boxes, pasted):
    asked = read_boxes(*(box.replace("{}", pasted) for box in boxes))
    assert texts(asked) == ("User: Hi\n\nAssistant: Hello\n\nUser: Fix it", "Which one?")
    assert asked.assistant_turns == 2 and "2 assistant turns" in asked.note


def test_a_transcript_is_split():
    asked = read_boxes("", "User: Fix it\nAssistant: Which one?")
    assert texts(asked) == ("Fix it", "Which one?") and asked.assistant_turns == 1


def test_a_row_is_split():
    asked = read_boxes("", '{"prompt": "Fix it", "response": "Which one?"}')
    assert texts(asked) == ("Fix it", "Which one?") and asked.assistant_turns == 0 and "row" in asked.note


def test_a_response_that_looks_like_a_chat_stays_when_there_is_a_prompt():
    story = "User: Hi\nAssistant: Hello"
    asked = read_boxes("Write a dialogue", story)
    assert texts(asked) == ("Write a dialogue", story) and "empty the prompt box" in asked.note


def test_a_prompt_of_several_turns_without_a_response_is_no_chat():
    prompt = "User: Hi\n\nAssistant: Hello\n\nUser: Fix it"
    assert texts(read_boxes(prompt, " ")) == (prompt, " ")


def test_a_chat_that_cannot_be_read_is_refused():
    with pytest.raises(InputError):
        read_boxes("", '[{"role": "user", "content": "Hi"}]')
    with pytest.raises(InputError):
        read_boxes("", '[{"role": "judge", "content": "Hi"}]')


def test_verdict_follows_the_class_and_sums_the_fold():
    found = verdict(said(full_refusal=0.5, partial_refusal=0.3, compliant=0.2), FOLD)
    assert (found.refused, found.torn) == (True, False) and found.probability == pytest.approx(0.8)
    torn = verdict(said(compliant=0.4, full_refusal=0.35, partial_refusal=0.25), FOLD)
    assert (torn.refused, torn.torn) == (False, True)
    assert verdict(said(toxic=0.9, safe=0.1), FOLD).refused is None


def test_agreement_has_four_cases():
    answer = said(partial_refusal=0.9)
    assert agreement(answer, Match("partial_refusal", "x"), FOLD) == "It agrees with the checkpoint."
    assert "agrees that this is refused" in agreement(answer, Match("full_refusal", "x"), FOLD)
    assert "disagrees" in agreement(answer, Match("compliant", None), FOLD)
    assert "cannot be compared" in agreement(said(toxic=1.0), Match("compliant", None), FOLD)


def test_what_was_not_read_is_said():
    lines = remarks(result(said(TokensRead(30, 50, 90, 1_290, 128), compliant=1.0)))
    assert lines == [
        "The start of the prompt, 20 tokens, was not read.",
        "The middle of the response, 1,200 tokens, was not read.",
    ]
    assert remarks(result(said(TokensRead(5, 5, 9, 9, 17), compliant=1.0))) == []


def test_every_turn_is_answered_with_progress(tiny_checkpoint):
    classifier, shown = load(str(tiny_checkpoint)), []
    whole = playground.answer(classifier, read_boxes("", json.dumps(CHAT)), STARTER_CHOICE, None)
    whole = playground.answer_every_turn(classifier, whole, Job(show=shown.append, every=0))
    assert [turn.exchange.response for turn in whole.every_turn] == ["Hello", "Which one?"]
    assert whole.every_turn[-1].said.probabilities == pytest.approx(whole.turn.said.probabilities, abs=1e-6)
    assert (shown[-1].done, shown[-1].total) == (2, 2)


def test_too_much_chat_for_a_page_is_refused_before_it_is_built(tiny_checkpoint):
    chat = [turn for _ in range(400) for turn in ({"role": "user", "content": "x" * 9_000}, CHAT[1])]
    whole = result(said(compliant=1.0))
    asked = read_boxes("", json.dumps(chat[:20]))
    many = Asked(asked.exchange, asked.chat * 40)
    with pytest.raises(InputError, match="more than 4,000,000 characters"):
        playground.answer_every_turn(None, Result(many, whole.turn, STARTER_CHOICE, INFO, 0, None))


@pytest.mark.parametrize("response", ["Plain.", "It's a \"test\" with $x, `y`, \\n and 'quotes'\nin two lines. é 字"])
def test_the_command_gives_the_row_of_the_page(tiny_checkpoint, response):
    choice = Choice(str(tiny_checkpoint), "tiny-bert", "directory")
    exchange = Exchange("Why; echo $(id)?", response, id=playground.LINE)
    whole = playground.answer(load(str(tiny_checkpoint)), Asked(exchange), choice, None)
    line, content = command(whole, whole.turn)
    assert content is None
    line = line.replace("python -m", f"{sys.executable} -m")
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    page = json.loads(json.dumps(playground.row(whole, whole.turn)))
    row = json.loads(done.stdout)
    assert row["probabilities"] == pytest.approx(page["probabilities"], abs=1e-6)
    same = [key for key in row if key != "probabilities"]
    assert {key: page[key] for key in same} == {key: row[key] for key in same}


def test_a_long_exchange_goes_through_a_file():
    line, content = command(*(lambda r: (r, r.turn))(result(said(compliant=1.0), Exchange("p", "'" * 5_000))))
    assert "classify exchange.jsonl" in line and json.loads(content)["response"] == "'" * 5_000


def test_a_hub_command_names_the_commit():
    hub = Choice("owner/name@main", "owner/name@main", "hub")
    info = CheckpointInfo("owner/name@main", "hub", "0a1b", "0" * 64, LABELS, 128, 128, "Bert", 10)
    whole = result(said(compliant=1.0), choice=hub, info=info)
    assert command(whole, whole.turn)[0].endswith("--checkpoint owner/name@0a1b")
    assert playground.link_checkpoint(whole) == "owner/name@0a1b"


def test_a_folder_is_named_in_no_link_and_by_its_short_name_in_the_row(tiny_checkpoint):
    whole = result(said(compliant=1.0), choice=Choice(str(tiny_checkpoint), "tiny-bert", "directory"))
    assert playground.link_checkpoint(whole) is None
    assert playground.row(whole, whole.turn)["checkpoint"]["name"] == "tiny-bert"
