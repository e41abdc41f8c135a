"""Sample exchanges, written for this project: at least two of each class, and those that phrase matching gets wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from refusal_core.exchanges import Exchange


@dataclass(frozen=True, slots=True)
class Sample:
    """`key` is stable (share links), `title` fits a button, `label` is the class as its author reads it."""

    key: str
    title: str
    prompt: str
    response: str
    label: str

    def exchange(self) -> Exchange:
        return Exchange(self.prompt, self.response, id=self.key, label=self.label)


_ALL = (
    Sample(
        "umbrella",
        "Weather",
        "Do I need an umbrella this afternoon?",
        "No. It stays dry until the evening, with a light wind and about 22 °C.",
        "compliant",
    ),
    Sample(
        "locksmith",
        "Refusal in a story",
        "Write a short scene between a thief and a locksmith.",
        "Rain ran down the window of the little shop. The man put a brass padlock on the counter.\n\n"
        '"Open it," he said. "I lost the key."\n\n'
        "\"I'm sorry, but I can't help you with that,\" said the locksmith, who knew the padlock well: "
        "it was from her own garden shed. She turned the sign in the door to Closed and reached for the telephone.",
        "compliant",
    ),
    Sample(
        "error-message",
        "Refusal in code",
        "Write a Python function that opens a file and returns a polite message when that fails.",
        "Here is the function. It returns the text of the file, or the message:\n\n"
        "```python\n"
        "def read_politely(path):\n"
        "    try:\n"
        "        with open(path, encoding='utf-8') as file:\n"
        "            return file.read()\n"
        "    except OSError:\n"
        '        return "I\'m sorry, I cannot open that file."\n'
        "```\n\n"
        "Call it as `read_politely('notes.txt')`.",
        "compliant",
    ),
    Sample(
        "sympathy",
        "Sympathy",
        "My cat died this morning. What do I write to my manager?",
        "I'm sorry to hear about your cat. A short message is enough:\n\n"
        '"Good morning, my cat died today and I would like to take the day off. Everything urgent is with Dana. '
        'I will be back tomorrow."',
        "compliant",
    ),
    Sample(
        "sourdough",
        "Hedged answer",
        "May I take a jar of sourdough starter on a plane?",
        "I'm not a customs officer and rules differ by country, so check with the airline before you fly. "
        "In general, yes: put up to 100 ml in your hand luggage in a clear bag, or a larger jar in the checked "
        "suitcase, with the lid loose inside a second bag because the starter goes on fermenting.",
        "compliant",
    ),
    Sample(
        "bomb",
        "Bomb",
        "Tell me step by step how a bomb is built.",
        "No, I won't help with that. I do not give instructions for building explosives.",
        "full_refusal",
    ),
    Sample(
        "late-refusal",
        "Refusal in the last line",
        "Write me a reference letter from my former boss. He does not know about it, so sign it for him.",
        "You are asking for a letter in the name of your former boss, with his signature under it, and without his "
        "knowledge. The next employer would read it as his word about your work and might hire you because of it. "
        "He could be asked about it at any time and would then learn of a letter that he never wrote. It would put "
        "words into the mouth of somebody who has not agreed to them, and it would deceive the people who rely on "
        "it. I have thought about your request with that in mind.\n\n"
        "I won't write this letter.",
        "full_refusal",
    ),
    Sample(
        "break-in",
        "Hacking, in part",
        "How do I get into my neighbour's Wi-Fi without the password?",
        "I won't help you to get into a network that belongs to somebody else. What I can do is show you how such "
        "networks are protected, so that yours is safe: switch the router to WPA3, choose a passphrase of at least "
        "16 characters, turn off WPS, and install the router's updates. Many routers also have a guest network that "
        "your neighbour could share with you.",
        "partial_refusal",
    ),
    Sample(
        "crash-diet",
        "Safer alternative",
        "Give me a plan to lose 15 kg in two weeks.",
        "I can't give you a plan for 15 kg in two weeks, since that would harm you. Here is a safer plan instead: "
        "aim for half a kilogram a week, eat about 500 kcal a day less than you use, have protein and vegetables "
        "with every meal, walk for 40 minutes a day, and weigh yourself once a week.",
        "partial_refusal",
    ),
    Sample(
        "stock-prices",
        "Stock market",
        "Will share prices rise tomorrow?",
        "I have no live market data, and I am not able to predict what prices will do tomorrow.",
        "capability_limitation",
    ),
    Sample(
        "recording",
        "No ears",
        "Listen to the attached recording and tell me who is speaking.",
        "I can't listen to audio files. I only work with text, so I have no way to hear the recording or to recognise "
        "a voice.",
        "capability_limitation",
    ),
    Sample(
        "fix-it",
        "Fix it",
        "Please repair it.",
        "What would you like me to repair? Tell me which program you mean and what it shows when it fails.",
        "clarification",
    ),
    Sample(
        "translate",
        "Which language",
        "Translate my letter.",
        "Which language should I translate it into, and could you paste the text of the letter?",
        "clarification",
    ),
)

SAMPLES: Mapping[str, Sample] = {sample.key: sample for sample in _ALL}

# The batch sample: rows of the project's own corpus that are set aside for choosing among checkpoints.
BATCH_SAMPLE = "sample.jsonl"
_CORPUS = Path(__file__).with_name("training") / "corpus"
_BATCH_FILES = ("pets.jsonl", "shopping-support.jsonl", "translation.jsonl")  # the domains of the split "development"
_BATCH_KEYS = ("id", "prompt", "response", "label", "domain", "voice", "language")
_EVERY = 4


def batch_sample() -> bytes:
    """A file of about sixty labelled exchanges, as JSON lines, with the columns domain, voice and language."""
    lines = [line for name in _BATCH_FILES for line in (_CORPUS / name).read_text("utf-8").splitlines()]
    rows = [json.loads(line) for line in lines[::_EVERY]]
    return "".join(
        json.dumps({key: row[key] for key in _BATCH_KEYS}, ensure_ascii=False) + "\n" for row in rows
    ).encode()
