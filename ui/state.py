"""What the pages remember, in one table, and share links: a view as query parameters and back.

The upper half is pure and needs no streamlit session; the lower half moves values in and out of one.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from urllib.parse import urlencode

import streamlit as st

from refusal_core.classifier import hub
from refusal_core.classifier.batch import LOW_CONFIDENCE
from refusal_core.classifier.checkpoint import STARTER
from refusal_core.classifier.texts import clean
from refusal_core.climb import Settings
from refusal_core.direction.meaning import REFUSED
from refusal_core.labels import DEFAULT_FOLD, FOLDS
from refusal_core.limits import SHARED_TEXT_CHARACTERS
from refusal_core.samples import SAMPLES
from ui.batch import FILE_ORDER
from ui.checkpoints import HUB

# Keys with their defaults, of widgets (a button may have no default) and beside them. A page's own keys start with its
# name.
CHECKPOINT, CHECKPOINT_PATH, CHECKPOINT_HUB, FOLD = "checkpoint", "checkpoint_path", "checkpoint_hub", "fold"
PROMPT, RESPONSE, SAMPLE = "playground_prompt", "playground_response", "playground_sample"
SHARE_TEXT = "playground_share_text"
LINK_WAITS = "link_waits"  # no widget: a link named the hub checkpoint, and nobody has asked for it yet
SEARCH_PRESET, SEARCH_SEED = "search_preset", "search_seed"
SEARCH = {field.name: f"search_{field.name}" for field in fields(Settings)}
VIEW, WHO, KEPT = "playground_view", "who", "feedback_kept"
BATCH_UPLOAD, BATCH_FILE, BATCH_EVERY_TURN = "batch_upload", "batch_file", "batch_every_turn"
BATCH_GROUP, BATCH_CLASSES, BATCH_MARKS, BATCH_TEXT, BATCH_ORDER, BATCH_THRESHOLD = (
    f"batch_{name}" for name in ("group", "classes", "marks", "text", "order", "threshold")
)
STUDY_WAY, STUDY_MEANS, STUDY_REPEATS, STUDY_SEED, STUDY_SPLIT, STUDY_SHARE, STUDY_CATEGORY, STUDY_KINDS = (
    f"study_{name}" for name in ("way", "means", "repeats", "seed", "split", "share", "category", "kinds")
)
STUDY_UPLOAD = {role: f"study_upload_{role}" for role in ("train", "test", "pool", "other", "prompts")}
STUDY_FILE = {role: f"study_file_{role}" for role in ("train", "test", "pool", "other")}
SC_SAMPLE, SC_UPLOAD, SC_FILE, SC_DRAFT, SC_TEXT, SC_ONLY, SC_COLUMNS, SC_BASELINE, SC_KEEP = (
    f"scorecard_{name}" for name in ("sample", "upload", "file", "draft", "text", "only", "columns", "baseline", "keep")
)
SC_VERDICTS, SC_TESTS, SC_SEVERITIES, SC_ROW, SC_COLUMN, SC_HISTORY = (
    f"scorecard_{name}" for name in ("verdicts", "tests", "severities", "row", "column", "history")
)
SECOND, SECOND_HUB = "compare_checkpoint", "compare_hub"
RUNS: Mapping[str, object] = {  # of the Training runs page: name to default; the key is "runs_" and the name
    "folder": None, "watch": False, "pick": (), "panels": (), "axis": "step", "smoothing": 0.0, "log": False,
    "from": None, "to": None, "filter": "",
    "tab": None, "metric": None, "baseline": None, "evaluation": None, "rows": None, "shares": "counts", "true": None,
    "predicted": None, "page": 1, "other": None, "calibrated": None, "label": None, "threshold": 0.5,
}  # fmt: skip
ONE, BATCH = "one", "batch"  # values of VIEW
DEFAULTS: Mapping[str, object] = {
    CHECKPOINT: STARTER,
    CHECKPOINT_PATH: "",
    CHECKPOINT_HUB: "",
    FOLD: DEFAULT_FOLD.key,
    PROMPT: "",
    RESPONSE: "",
    SAMPLE: None,
    SHARE_TEXT: False,
    LINK_WAITS: False,
    SEARCH_PRESET: None,
    SEARCH_SEED: 0,
    **{key: getattr(Settings, name) for name, key in SEARCH.items()},
    VIEW: ONE,
    WHO: "",
    KEPT: False,
    SECOND: None,
    SECOND_HUB: "",
    BATCH_FILE: None,
    BATCH_EVERY_TURN: False,
    BATCH_GROUP: None,
    BATCH_CLASSES: (),
    BATCH_MARKS: (),
    BATCH_TEXT: "",
    BATCH_ORDER: FILE_ORDER,
    BATCH_THRESHOLD: LOW_CONFIDENCE,
    STUDY_WAY: "two",
    STUDY_MEANS: REFUSED.key,
    STUDY_REPEATS: 999,  # as in direction.result.Settings
    STUDY_SEED: 0,
    STUDY_SPLIT: "each",
    STUDY_SHARE: 0.3,
    STUDY_CATEGORY: None,
    STUDY_KINDS: (0, 1),
    **dict.fromkeys(STUDY_FILE.values()),
    **dict.fromkeys((SC_SAMPLE, SC_FILE, SC_DRAFT)),
    **dict.fromkeys((SC_TEXT, SC_ONLY, SC_COLUMNS, SC_BASELINE), ""),
    **dict.fromkeys((SC_VERDICTS, SC_TESTS, SC_SEVERITIES), ()),
    SC_ROW: 0,
    SC_COLUMN: 0,
    SC_KEEP: True,
    SC_HISTORY: False,
    **{f"runs_{name}": default for name, default in RUNS.items()},
}
NEW_BATCH, SAMPLE_BATCH = "new", "sample"  # in a link; anything else is the token of a batch in memory

# Two texts of the longest shared length, every character written as a pair of \uXXXX; and the same as base64.
_JSON_BYTES = 2 * SHARED_TEXT_CHARACTERS * 12 + 100
_PACKED_CHARACTERS = _JSON_BYTES * 4 // 3 + 200
_HUB_NAME_CHARACTERS = 200
_BATCH = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True)
class View:
    """What a share link holds. None is "not stated": opening the link leaves that setting as it is."""

    checkpoint: str | None = None  # "starter" or a hub name
    fold: str | None = None
    sample: str | None = None
    texts: tuple[str, str] | None = None  # prompt and response
    batch: str | None = None  # NEW_BATCH, SAMPLE_BATCH, or the token of a batch that this server has in memory


def to_params(view: View) -> dict[str, str]:
    """The query parameters of `view`. Raises ValueError for texts that are too long to share."""
    params = {"checkpoint": view.checkpoint, "fold": view.fold, "sample": view.sample, "batch": view.batch}
    params = {name: value for name, value in params.items() if value is not None}
    if view.texts is not None:
        if not can_share(*view.texts):
            raise ValueError(f"a shared text has at most {SHARED_TEXT_CHARACTERS} characters")
        packed = zlib.compress(json.dumps(view.texts).encode(), 9)
        params["text"] = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return params


def from_params(params: Mapping[str, str]) -> tuple[View, list[str]]:
    """The view that a link's parameters describe, and a sentence for each that was ignored. Never raises."""
    ignored = []
    checkpoint, fold, sample = params.get("checkpoint"), params.get("fold"), params.get("sample")
    if checkpoint is not None and checkpoint != STARTER and not _is_hub_name(checkpoint):
        checkpoint = None
        ignored.append("The link names a checkpoint that no link can name; the one chosen here stays.")
    if fold is not None and fold not in FOLDS:
        fold = None
        ignored.append("The link names a meaning of refused that is not known here; the one chosen here stays.")
    if sample is not None and sample not in SAMPLES:
        sample = None
        ignored.append("The link names a sample that is not known here.")
    batch = params.get("batch")
    if batch is not None and not _BATCH.fullmatch(batch):
        batch = None
        ignored.append("The link names a batch that cannot be; it was left out.")
    texts = None
    if "text" in params:
        texts = _unpack(params["text"])
        if texts is None:
            ignored.append("The text in the link is damaged or too long; it was left out.")
    return View(checkpoint, fold, None if texts else sample, texts, batch), ignored


def can_share(prompt: str, response: str) -> bool:
    """Whether both texts are short enough for a link."""
    return max(len(prompt), len(response)) <= SHARED_TEXT_CHARACTERS


def link(view: View, page_url: str | None) -> str:
    """The address that restores `view`; only its query part when the page's own address is not known."""
    return address(to_params(view), page_url)


def address(params: Mapping[str, str], page_url: str | None) -> str:
    """The address with these query parameters; only its query part when the page's own address is not known."""
    return f"{page_url or ''}?{urlencode(params)}"


def _is_hub_name(name: str) -> bool:
    return len(name) <= _HUB_NAME_CHARACTERS and hub.parse_name(name) is not None


def _unpack(text: str) -> tuple[str, str] | None:
    if len(text) > _PACKED_CHARACTERS:
        return None
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        content = unpacker.decompress(packed, _JSON_BYTES)
        if not unpacker.eof:  # cut off, or more than two texts can make
            return None
        texts = json.loads(content)
    except (ValueError, RecursionError, binascii.Error, zlib.error):
        return None
    if not (isinstance(texts, list) and len(texts) == 2 and all(isinstance(one, str) for one in texts)):
        return None
    return (clean(texts[0]), clean(texts[1])) if can_share(*texts) else None


def prepare() -> None:
    """Give every key its default in a new session, before any widget is made."""
    for key, default in DEFAULTS.items():
        st.session_state.setdefault(key, default)


def arrived(page: str) -> dict[str, str] | None:
    """The query parameters when the visitor has just come to `page`, by link, menu or reload; None on later reruns.

    Later ones are not read: the address may lag behind the widgets.
    """
    if st.session_state.get("page") == page:
        return None
    st.session_state["page"] = page
    return st.query_params.to_dict()


def restore_shared(view: View, *, demo: bool) -> list[str]:
    """Set what all pages share from a link; sentences for what was not taken over."""
    if view.fold:
        st.session_state[FOLD] = view.fold
    if view.checkpoint == STARTER:
        st.session_state[CHECKPOINT] = STARTER
    elif view.checkpoint and demo:
        return ["The link names a hub checkpoint; the demo has the starter only."]
    elif view.checkpoint:
        st.session_state[CHECKPOINT], st.session_state[CHECKPOINT_HUB] = HUB, view.checkpoint
        st.session_state[LINK_WAITS] = True
    return []


def waits() -> bool:
    """Whether the chosen hub checkpoint was named by a link, so that only a press of Classify may fetch it."""
    return st.session_state[LINK_WAITS] and st.session_state[CHECKPOINT] == HUB


def wait_no_longer() -> None:
    """The visitor has asked for the chosen checkpoint."""
    if st.session_state[CHECKPOINT] == HUB:
        st.session_state[LINK_WAITS] = False


def show_in_address(view: View) -> None:
    """Make the browser's address restore `view`, without the texts: those enter a link only when asked for."""
    put_in_address(to_params(View(view.checkpoint, view.fold, view.sample, batch=view.batch)))


def put_in_address(params: Mapping[str, str]) -> None:
    """Give the browser's address these query parameters and no others."""
    if st.query_params.to_dict() != params:
        st.query_params.from_dict(params)
