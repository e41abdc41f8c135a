"""What the Direction study page does apart from drawing: what is asked, its command, links, and words around a result.

Imports no streamlit.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path

from refusal_core.activations.peek import Peek
from refusal_core.activations.reading import Reading, read_parts
from refusal_core.direction.examples import Examples, examples_of
from refusal_core.direction.findings import auroc_words, drawn_words
from refusal_core.direction.intervals import CategoryInterval, NotAvailable
from refusal_core.direction.meaning import Meaning, meaning_of
from refusal_core.direction.planning import categories_for
from refusal_core.direction.prompts import read_prompts
from refusal_core.direction.record import Record, record_of
from refusal_core.direction.result import Settings, Study
from refusal_core.direction.sample import LAYER_INDEX, sample_files
from refusal_core.direction.study import study
from refusal_core.errors import InputError, one_line
from refusal_core.jobs import Job
from refusal_core.metrics.intervals import Rate, format_rate
from ui.playground import near

SAMPLE, UPLOAD, FILE = "sample", "upload", "file"
SAMPLE_SAYS = (
    "The sample: 192 prompts that the project wrote, half of them sensitive, in SmolLM2-135M-Instruct. Label 1 is what "
    "their author thinks of the prompt, and says nothing about what the model answered."
)
WIDTHS = (0.3, 0.2, 0.1)  # of an interval, for the plan
PROMPT_SHOWN, ID_SHOWN = 400, 80  # characters in a table's cell
_DIGEST, _TOKEN = re.compile(r"[0-9a-f]{64}"), re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True)
class Offered:
    """A file that is uploaded, picked below a data root, or shipped. `key` tells it from every other one."""

    kind: str
    name: str  # its last part, as the command names it in messages
    shown: str  # for a reader: with the folders below the data root
    content: BytesIO | Path
    size: int
    key: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """What is to be studied: one or two files, how they are read, and the settings."""

    files: tuple[Offered, ...]
    reading: Reading
    settings: Settings

    @property
    def title(self) -> str:
        return " and ".join(file.shown for file in self.files)


def run(asked: Asked, job: Job) -> Record:
    """The study of `asked`, as the command runs it. Raises as it does."""
    sources = [(file.content, file.name) for file in asked.files]
    train, test = read_parts(sources, asked.reading, asked.settings.seed, job)
    result = study(train, test, asked.settings, job)
    return record_of(result, examples_of(test, result), command=command(asked), title=asked.title)


def command(asked: Asked) -> str:
    """The shell line that writes the downloaded study.json; uploaded files are to lie in the app's folder."""
    settings = asked.settings
    words = ["python", "-m", "refusal_core.study", *map(path_of, asked.files)]
    for name in ("model", "layer", "pooling", "label_means"):
        if value := getattr(settings, name):
            words.append(f"--{name.replace('_', '-')}={value}")
    words += [f"--repeats={settings.repeats}", f"--seed={settings.seed}"]
    if settings.split_repeats != Settings.split_repeats:
        words.append(f"--split-repeats={settings.split_repeats}")
    return shlex.join([*words, *asked.reading.arguments(), "--output=study.json"])


def path_of(file: Offered) -> str:
    """The file as a command in the app's folder takes it."""
    return near(file.content) if isinstance(file.content, Path) else file.name


def named(link: Mapping[str, str]) -> tuple[str | None, str | None]:
    """What a link names: "sample", the token of a study in memory or the digest of a stored one; or a sentence why it
    is none of them.
    """
    value = link.get("study")
    if value is None or value == SAMPLE or _DIGEST.fullmatch(value) or _TOKEN.fullmatch(value):
        return value, None
    return None, "The link names a study that cannot be; it was left out."


@cache
def sample() -> Asked:
    """The sample that ships, at the layer that its README shows first. Raises InputError where it is not installed."""
    train, test, _ = sample_files()
    files = []
    for path in (train, test):
        if not path.exists():
            raise InputError("the sample is not installed", where=path.name, fix="install the package again")
        files.append(Offered(SAMPLE, path.name, f"sample/{path.name}", path, path.stat().st_size, (SAMPLE, path.name)))
    peek = Peek(train, train.name)
    stated = peek.metadata()
    if names := peek.layer_names("activations"):
        stated["layer"] = names[LAYER_INDEX]
    settings = Settings(**stated)
    return Asked(tuple(files), Reading(layer_index=LAYER_INDEX), settings)


@cache
def sample_prompts() -> dict[str, str]:
    """The prompts of the sample by id."""
    return read_prompts(sample_files()[2])


def is_digest(value: str) -> bool:
    return _DIGEST.fullmatch(value) is not None


def meaning(record: Record) -> Meaning:
    """The words for this study's labels."""
    return meaning_of(record.study.extraction.get("label_means"))


def rests_on(result: Study) -> str:
    """What the answer rests on: rows, labels, and whether the test categories were seen."""
    words, train, test = meaning_of(result.extraction.get("label_means")), result.inputs["train"], result.inputs["test"]
    if test is None:
        return (
            f"One file of {_rows(train, words)} in {len(train['categories'])} categories; each row is called by a "
            "direction that was fitted without it."
        )
    seen, k = len(result.seen_categories), len(test["categories"])
    where = {
        "categories held out": f"none of the {k} test categories is in training",
        "categories shared": f"all {k} test categories are in training too",
        "mixed": f"{seen} of the {k} test categories are in training too",
    }[result.split]
    return f"Fitted on {_rows(train, words)}, scored on {_rows(test, words)}; {where}."


def scores_line(result: Study) -> list[tuple[str, str]]:
    """Names and values of what stands beside the answer."""
    scores, words = result.test, meaning_of(result.extraction.get("label_means"))
    n0, n1 = result.inputs["test"]["label_counts"].values()
    rows = [("AUROC", auroc_words(vars(result)))]
    for kind, n in (("false", n0), ("missed", n1)):
        value = getattr(scores, f"{kind}_refusal_rate")
        rate = Rate(value, n, getattr(scores, f"{kind}_refusal_rate_interval"))
        rows.append((getattr(words, f"{kind}_rate").lower(), format_rate(rate)))
    majority = result.baselines["majority"]
    accuracy = Rate(scores.accuracy, n0 + n1, scores.accuracy_interval)
    alone = f"the more common training label alone has {majority.accuracy:.2f}"
    rows.append(("accuracy", f"{format_rate(accuracy)}, {alone}"))
    return rows


def interval_words(result: Study) -> str:
    """What the interval is, or why there is none."""
    found = result.interval
    if isinstance(found, NotAvailable):
        return f"No interval over categories: {found.not_available}."
    effective = " and ".join(f"{value:.1f}" for value in found.effective_categories.values())
    text = (
        f"The interval says how the score would scatter over other categories like these ({found.method}, "
        f"{found.level:.0%}; by their sizes the categories weigh as {effective} equal ones)."
    )
    return f"{text} {drawn_words(found)}"


def auroc_interval_words(result: Study) -> str:
    """The AUROC with its interval and what that rests on, or why there is none."""
    found, text = result.auroc_interval, f"AUROC {auroc_words(vars(result))}."
    if isinstance(found, NotAvailable):
        return text
    return f"{text} The interval is over categories too ({found.method}, {found.level:.0%}). {drawn_words(found)}"


def plan_rows(result: Study) -> list[tuple[str, str, str]]:
    """Width, and categories of label 0 and of label 1 that it would need; empty where there is no interval."""
    if not isinstance(result.interval, CategoryInterval):
        return []
    rows = []
    for width in WIDTHS:
        wanted = categories_for(result.interval, result.test.balanced_accuracy, width)
        counts = wanted.categories_per_class
        cells = [f"{counts[label]:,}" for label in ("0", "1")] if counts else ["more than 1,000 times as many"] * 2
        rows.append((f"{width:g}" + (" (reached)" if wanted.reached else ""), *cells))
    return rows


def wrong_rows(
    examples: Examples, words: Meaning, prompts: Mapping[str, str], kinds: Sequence[int], most: int
) -> list[dict[str, object]]:
    """Cells of the examples of these labels on the wrong side, the farthest from the threshold first."""
    found = [row for label in kinds for row in examples.wrong(label).tolist()]
    found.sort(key=lambda row: (-abs(examples.margins[row]), row))
    rows = []
    for row in found[:most]:
        one = int(examples.labels[row])
        cells = {
            "id": one_line(examples.ids[row], ID_SHOWN),
            "category": one_line(examples.categories[examples.code[row]], ID_SHOWN),
            "label": words.one if one else words.zero,
            "called": words.zero if one else words.one,
            "from the threshold": float(examples.margins[row]),
        }
        if prompts:
            cells["prompt"] = one_line(prompts.get(examples.ids[row], "")[: PROMPT_SHOWN + 1], PROMPT_SHOWN)
        rows.append(cells)
    return rows


def does_not_show(result: Study) -> list[str]:
    """What nobody should read into the result, in plain words."""
    words = meaning_of(result.extraction.get("label_means"))
    said = [
        "That the model uses this direction. The classes can be told apart along it in this export; whether the model "
        "does so takes an intervention, ablation or steering, with controls.",
        "That it is the only direction, or that one direction covers every kind of question.",
        "Anything about another model, layer or token position than those of the export.",
    ]
    if words.key == "harmful":
        said.insert(
            1,
            "Anything about refusing. Label 1 says that the prompt is harmful, not that the model declined to answer.",
        )
    if result.split != "categories held out" and result.inputs["test"] is not None:
        said.insert(0, "How it does on categories that it has not seen: test categories were in the training file.")
    return said


def _rows(described: Mapping, words: Meaning) -> str:
    n0, n1 = described["label_counts"].values()
    return f"{described['examples']:,} examples ({n1:,} {words.one}, {n0:,} {words.zero})"
