"""How things are put on a page. Text that anybody else wrote goes through `text` and `code`, never through Markdown.

A test allows Streamlit's Markdown calls with literals only; sentences with values go through `sentence`, whose values
are numbers and words of our own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from refusal_core.errors import one_line
from refusal_core.labels import LABELS
from refusal_core.plots import theme
from refusal_core.plots.theme import number

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LONG_TEXT_CHARACTERS = 20_000  # of one text on a page; the rest is in the download

# Names of Streamlit's palette, which the theme sets to the hues of the classes.
_HUES = dict(zip(LABELS, ("blue", "orange", "yellow", "violet", "green"), strict=True))
_SPECIAL = re.compile(r"[^\w \n.,;()%/'’–…+=-]|_")
_MIME = {
    "json": "application/json",
    "jsonl": "application/jsonl",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "csv": "text/csv",
    "html": "text/html",
    "xml": "text/xml",
}


class Strong(str):
    """A word of our own as a value of `sentence` or a cell of `facts`: shown bold."""


class ClassName(str):
    """One of the five classes as a value of `sentence`: shown with its colour."""


def plain(value: object) -> str:
    """`value` as Markdown that shows the same characters, for words of our own such as full_refusal."""
    if isinstance(value, ClassName):
        return f":{_HUES[value]}[■] {plain(str(value))}"
    if isinstance(value, tuple):
        return " ".join(map(plain, value))
    if isinstance(value, Strong):
        return f"**{plain(str(value))}**"
    return _SPECIAL.sub(lambda mark: "\\" * mark.group().isascii() + mark.group(), one_line(str(value)))


def sentence(template: str, **values: object) -> None:
    """A Markdown sentence. `template` is a literal; `values` are numbers, class names and other words of our own."""
    st.markdown(template.format(**{name: plain(value) for name, value in values.items()}))


def headline(template: str, **values: object) -> None:
    """The answer, in the largest type. `template` is a literal; `values` as in `sentence`."""
    st.header(template.format(**{name: plain(value) for name, value in values.items()}), anchor=False)


def class_heading(label: str, probability: float) -> None:
    """The answer, in the largest type. A name that is not one of our five is the checkpoint's, so untrusted."""
    if label in _HUES:
        st.header(f"{plain(ClassName(label))} {plain(number(probability))}", anchor=False)
    else:
        st.header(f":gray[■] {plain(number(probability))}", anchor=False)
        text(one_line(label, 120))


def text(body: str) -> None:
    """Text of any origin, as it is."""
    st.text(_cut(body))


def code(body: str, language: str | None = None, *, wrap: bool = True) -> None:
    """Text of any origin in a box with a copy button."""
    st.code(_cut(body), language=language, wrap_lines=wrap)


def facts(header: Sequence[str], rows: Iterable[Sequence[object]], *, right: Collection[str] = ()) -> None:
    """A small table of our own words and numbers, as a real table that a screen reader walks; needs no pandas.

    `right` names the columns of numbers. A tuple in a cell is a line of words.
    """
    lines = ["| " + " | ".join(map(plain, row)) + " |" for row in (header, *rows)]
    lines.insert(1, "|" + "|".join("--:" if name in right else "---" for name in header) + "|")
    st.markdown("\n".join(lines))


def problem(headline: str, sentence_for_reader: str) -> None:
    """An error in the house form: the headline is a literal, the sentence may quote the visitor's input."""
    with st.container(border=True, gap="xsmall"):
        st.markdown(f":red[**✕ {plain(headline)}**]")
        text(sentence_for_reader)


def refused(headline: str, why: str | None, *, earlier: bool) -> None:
    """Why there is no new result, when there is none; `earlier` says that the one before is still shown."""
    if why:
        problem(headline, why)
        if earlier:
            st.markdown("The last result stays below.")


def note(sentence_for_reader: str) -> None:
    """A remark that the reader should not miss, of any origin."""
    with st.container(horizontal=True, gap="xsmall", wrap=False):
        st.markdown("**!**", width="content")
        st.text(_cut(sentence_for_reader), width="stretch")  # as wide as its text it would not wrap


def figure(drawn: tuple[Figure, str], *, key: str) -> None:
    """A figure with its text for screen readers. It cannot be zoomed by accident and holds no tab stop."""
    chart, alt = drawn
    theme.ink(chart, dark=st.context.theme.type == "dark")
    st.plotly_chart(chart, theme="streamlit", key=key, config={"staticPlot": True}, alt=alt)


def download(label: str, data: str | bytes | Callable[[], str | bytes], file_name: str, *, key: str) -> None:
    """A download that does not rerun the page. `label` is a literal; a function is called when it is clicked."""
    mime = _MIME.get(file_name.rpartition(".")[2].lower(), "application/octet-stream")
    st.download_button(label, data, file_name=file_name, mime=mime, key=key, on_click="ignore")


def _cut(body: str) -> str:
    if len(body) <= LONG_TEXT_CHARACTERS:
        return body
    half = LONG_TEXT_CHARACTERS // 2
    left_out = len(body) - 2 * half
    return f"{body[:half]}\n\n[… {left_out:,} characters are not shown …]\n\n{body[-half:]}"
