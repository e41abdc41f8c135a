"""The project's own corpus: rows as its README says, no copies, no loops, enough of each class."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from refusal_core.labels import LABELS
from refusal_core.training.near_duplicates import alike_across, near_duplicates, words

TRAINING = Path(__file__).resolve().parents[2] / "refusal_core" / "training"
CORPUS = TRAINING / "corpus"
README = (CORPUS / "README.md").read_text(encoding="utf-8")
DOMAINS = json.loads((CORPUS / "domains.json").read_text(encoding="utf-8"))
EXEMPLARS = "museum-library"
# No subject: the kinds that need more rows.
KINDS = (
    "mixed", "early-assistants", "recent-assistants", "short-answers", "tools-and-passages", "user-tasks",
    "sensitive-topics", "limits-and-gaps", "near-the-border",
)  # fmt: skip
FIELDS = ["id", "prompt", "response", "label", "domain", "split", "voice", "tags", "language"]
FIELDS_OF_ORIGIN = {"source": "project corpus", "annotator": "project", "license": "MIT"}
LANGUAGES = {"en", "de", "fr", "es", "pt", "zh", "ja"}
VOICES = set(re.findall(r"`([a-z-]+)`", README[README.index("| `voice` |") + 10 : README.index("| `tags` |")]))
TAGS = set(re.findall(r"`([a-z-]+)`", README[README.index("\nTags:") : README.index("\n## Domains")]))

# The floors of the finished corpus.
ROWS = 1720
FLOORS = {
    "compliant": 350,
    "full_refusal": 350,
    "partial_refusal": 450,
    "capability_limitation": 350,
    "clarification": 200,
}
HELD_OUT_FLOOR = 45
DEVELOPMENT_FLOOR = 25
TAG_FLOORS = {
    "minimal-pair": 360,
    "quoted-refusal": 35,
    "sympathy": 20,
    "hedge-then-answer": 35,
    "warning-then-answer": 35,
    "dangerous-word-harmless": 35,
    "last-line-refusal": 30,
    "long-preamble": 30,
    "no-usual-words": 120,
    "safer-version": 120,
    "half-half": 100,
    "alternative-offered": 70,
    "question-at-end": 35,
    "question-back": 40,
    "limits-then-helps": 60,
    "text-is-silent": 30,
    "code": 50,
    "markdown": 150,
    "dialogue": 30,
    "json": 15,
    "non-english": 120,
    "typographic": 60,
}
# At most so many responses of one class may share their first or last words.
SHARED_WORDS = {6: 9, 3: 30}
SHARED_PROMPT_WORDS = {5: 8}


def _rows():
    for path in sorted(CORPUS.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], 1):
            yield f"{path.name}:{number}", path, line


ROWS_READ = [(where, path, json.loads(line), line) for where, path, line in _rows()]
CORPUS_ROWS = [row for _, _, row, _ in ROWS_READ]
PAIRS: dict[str, list[int]] = defaultdict(list)
for position, row_ in enumerate(CORPUS_ROWS):
    if "pair" in row_:
        PAIRS[row_["pair"]].append(position)
_NO_USUAL_WORDS = re.compile(r"\b(sorry|can't|cannot|can not|unable|won't|as an ai|apologi[sz]e)\b", re.IGNORECASE)
_CURLY = re.compile("[\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb]")


def _format_problems(path, row, line):
    domain = DOMAINS.get(row.get("domain"))
    if list(row) != [*FIELDS, *(["pair"] if "pair" in row else []), *FIELDS_OF_ORIGIN]:
        return [f"the fields are {list(row)}"]
    if domain is None:
        return [f"unknown domain {row['domain']!r}"]
    tags, response = row["tags"], row["response"]
    checks = {
        "file name": path.stem == ("exemplars" if row["domain"] == EXEMPLARS else row["domain"]),
        "id": re.fullmatch(rf"{domain['prefix']}-\d{{4}}", row["id"]),
        "pair": "pair" not in row or re.fullmatch(rf"{domain['prefix']}-p\d\d", row["pair"]),
        "pair and its tag go together": ("pair" in row) == ("minimal-pair" in tags),
        "split": row["split"] == domain["split"],
        "label": row["label"] in LABELS,
        "voice": row["voice"] in VOICES,
        "language": row["language"] in LANGUAGES,
        "language and its tag go together": (row["language"] != "en") == ("non-english" in tags),
        "tags": isinstance(tags, list) and set(tags) <= TAGS and len(set(tags)) == len(tags),
        "source, annotator, license": all(row[field] == value for field, value in FIELDS_OF_ORIGIN.items()),
        "texts": all(isinstance(row[f], str) and row[f].strip() == row[f] != "" for f in ("prompt", "response")),
        "no reasoning block": "<think" not in response.lower(),
        "written as characters, not escapes": not re.search(r"\\u[0-9a-f]{4}", line),
        "typographic": "typographic" not in tags or _CURLY.search(response),
        "one-liner": "one-liner" not in tags or row["language"] in ("zh", "ja") or len(words(response)) <= 8,
        "no-usual-words": "no-usual-words" not in tags or not _NO_USUAL_WORDS.search(response.replace("\u2019", "'")),
        "question-back": "question-back" not in tags or row["label"] in LABELS[1:4],
        "question-at-end": "question-at-end" not in tags
        or (row["label"] == "compliant" and response.rstrip("*_\"”’')} \n`").endswith(("?", "？"))),
    }
    return [name for name, fine in checks.items() if not fine]


def test_every_row_is_as_the_page_says():
    problems = {where: found for where, path, row, line in ROWS_READ if (found := _format_problems(path, row, line))}
    assert not problems


def test_ids_are_unique():
    assert [row_id for row_id, n in Counter(row["id"] for row in CORPUS_ROWS).items() if n > 1] == []


def test_the_page_and_the_domain_table_agree():
    table = re.findall(r"^\| ([a-z-]+) \| ([a-z]{3}) \| (train|development|heldout) \|$", README, re.MULTILINE)
    assert table == [(name, d["prefix"], d["split"]) for name, d in DOMAINS.items()]
    assert all(d.keys() == {"prefix", "split"} for d in DOMAINS.values())
    assert len({d["prefix"] for d in DOMAINS.values()}) == len(DOMAINS)


def test_the_numbers_of_the_page_are_those_of_the_files():
    counts = Counter((split, row["label"]) for row in CORPUS_ROWS for split in (row["split"], "all"))
    domains = Counter(split for d in DOMAINS.values() for split in (d["split"], "all"))
    [header] = re.findall(r"^\| split \| domains \| (.+) \| all \|$", README, re.MULTILINE)
    assert tuple(header.split(" | ")) == LABELS
    table = re.findall(r"^\| (\w+) " + r"\| ([\d,]+) " * 7 + r"\|$", README, re.MULTILINE)
    assert {split: tuple(numbers) for split, *numbers in table} == {
        split: tuple(f"{number:,}" for number in (domains[split], *of_class, sum(of_class)))
        for split in ("train", "development", "heldout", "all")
        for of_class in [[counts[split, label] for label in LABELS]]
    }


def test_each_domain_has_as_many_of_a_class_as_the_page_says():
    counts = Counter((row["domain"], row["label"]) for row in CORPUS_ROWS)
    found = {
        label: sorted({counts[domain, label] for domain in DOMAINS if domain not in (EXEMPLARS, *KINDS)})
        for label in LABELS
    }
    assert "20 or 21 `partial_refusal`, 15 to 17 `full_refusal`, `capability_limitation` and `compliant`" in README
    assert "9 to 11 `clarification`" in README and "`museum-library` shows the expected quality: 12 of each" in README
    three = sorted({n for label in ("full_refusal", "capability_limitation", "compliant") for n in found[label]})
    assert (found["partial_refusal"], three, found["clarification"]) == ([20, 21], [15, 16, 17], [9, 10, 11])
    assert {counts[EXEMPLARS, label] for label in LABELS} == {12}
    no_subject = README[README.index("no subject") : README.index("| domain | prefix | split |")]
    assert tuple(sorted(re.findall(r"^- `([a-z-]+)`", no_subject, re.MULTILINE))) == tuple(sorted(KINDS))


def test_the_guide_has_every_class_in_order_with_five_examples():
    guide = (TRAINING / "LABELS.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", guide, flags=re.MULTILINE)[2:]
    assert tuple(section.split("\n")[0] for section in sections) == LABELS
    assert [len(re.findall(r"^\| ", section, re.MULTILINE)) for section in sections] == [6] * len(LABELS)


def test_pairs_share_the_prompt_and_differ_in_the_label():
    for name, members in PAIRS.items():
        rows = [CORPUS_ROWS[position] for position in members]
        assert len(rows) >= 2, name
        assert len({row["prompt"] for row in rows}) == 1, name
        assert len({row["label"] for row in rows}) == len(rows), name


def test_no_near_duplicates():
    allowed = [two for members in PAIRS.values() for two in combinations(members, 2)]
    hits = near_duplicates([(row["prompt"], row["response"]) for row in CORPUS_ROWS], same_prompt=allowed)
    named = [(CORPUS_ROWS[h.first]["id"], CORPUS_ROWS[h.second]["id"], h.part, round(h.similarity, 2)) for h in hits]
    assert not named


def _shared(texts, count, end=False):
    counts = Counter()
    for text in texts:
        spoken = words(text)
        if len(spoken) >= count:
            counts[" ".join(spoken[-count:] if end else spoken[:count])] += 1
    return counts


@pytest.mark.parametrize("label", LABELS)
def test_no_template_loops_in_responses(label):
    texts = [row["response"] for row in CORPUS_ROWS if row["label"] == label]
    for count, most in SHARED_WORDS.items():
        for end in (False, True):
            loops = {opening: n for opening, n in _shared(texts, count, end).items() if n > most}
            assert not loops, "closing" if end else "opening"


def test_no_template_loops_in_prompts():
    for count, most in SHARED_PROMPT_WORDS.items():
        loops = _shared({row["prompt"] for row in CORPUS_ROWS}, count)
        assert not {opening: n for opening, n in loops.items() if n > most}


def test_no_prompt_is_in_the_shared_data(shared_data):
    files = [*(shared_data / "refusals").glob("*.jsonl"), *(shared_data / "field_cases").glob("*.jsonl")]
    theirs = sorted({json.loads(line)["prompt"] for path in files for line in path.open(encoding="utf-8")})
    ours = sorted({row["prompt"] for row in CORPUS_ROWS})
    assert not [(ours[i], theirs[j]) for i, j in alike_across(ours, theirs, 0.7)]


@pytest.mark.parametrize("label", LABELS)
def test_length_does_not_give_the_class_away(label):
    lengths = [len(words(r["response"])) for r in CORPUS_ROWS if r["label"] == label and r["language"] == "en"]
    assert statistics.mean(length <= 15 for length in lengths) >= 0.10
    assert statistics.mean(length > 70 for length in lengths) >= (0.03 if label == "clarification" else 0.12)


def test_there_are_enough_rows_of_each_class_and_kind():
    """Fails until the corpus is complete."""
    counts = Counter(row["label"] for row in CORPUS_ROWS)
    by_split = Counter((row["split"], row["label"]) for row in CORPUS_ROWS)
    tags = Counter(tag for row in CORPUS_ROWS for tag in row["tags"])
    languages = Counter(row["language"] for row in CORPUS_ROWS)
    missing = {
        **{label: (counts[label], least) for label, least in FLOORS.items() if counts[label] < least},
        **{
            (split, label): (by_split[split, label], least)
            for split, least in (("heldout", HELD_OUT_FLOOR), ("development", DEVELOPMENT_FLOOR))
            for label in LABELS
            if by_split[split, label] < least
        },
        **{tag: (tags[tag], least) for tag, least in TAG_FLOORS.items() if tags[tag] < least},
        **{language: (languages[language], 18) for language in sorted(LANGUAGES) if languages[language] < 18},
        **{domain: "no rows" for domain in DOMAINS if domain not in {row["domain"] for row in CORPUS_ROWS}},
    }
    if len(CORPUS_ROWS) < ROWS:
        missing["rows"] = (len(CORPUS_ROWS), ROWS)
    assert not missing


def test_the_training_page_counts_the_rows():
    page = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    assert f"holds {len(CORPUS_ROWS):,} labelled exchanges" in page
