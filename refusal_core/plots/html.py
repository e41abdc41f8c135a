"""One self-contained HTML file for a report: all text escaped, no script, nothing fetched.

Figures in it are drawn as inline SVG (`plots/svg.py`) and not by Plotly: its library alone is 4.9 MB a file, needs
script to show anything, and prints poorly. A content policy in the file forbids script and requests, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from refusal_core.errors import one_line
from refusal_core.plots.theme import FONT


@dataclass(frozen=True)
class Chart:
    """An SVG drawing that we made (`svg` is put in as it is) and what it shows in words, for screen readers."""

    svg: str
    alt: str


@dataclass(frozen=True)
class Table:
    """Rows under a header. Columns of numbers, also of numbers written out, or None are right-aligned."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""


@dataclass(frozen=True)
class Code:
    """Text in a fixed-width box, as it is."""

    text: str


@dataclass(frozen=True)
class Banner:
    """A remark that no reader should miss, in a frame."""

    text: str


@dataclass(frozen=True)
class Lead:
    """The answer of the report, in the largest type below the title."""

    text: str


Part = str | Chart | Table | Code | Banner | Lead  # a str is a paragraph


@dataclass(frozen=True)
class Section:
    """A heading, "" for none, and what stands under it."""

    heading: str
    parts: Sequence[Part]


def html_report(title: str, sections: Iterable[Section]) -> str:
    """The file as text, LF line ends. Raises TypeError for a part of another type, ValueError for a ragged table."""
    body = "\n".join(line for section in sections for line in _section(section))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{_text(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _section(section: Section) -> Iterable[str]:
    if section.heading:
        yield f"<h2>{_text(section.heading)}</h2>"
    yield from map(_part, section.parts)


def _part(part: Part) -> str:
    if isinstance(part, str):
        return f"<p>{_text(part)}</p>"
    if isinstance(part, Chart):
        drawing = f'<div role="img" aria-label="{_text(part.alt)}">{part.svg}</div>'
        return f'<div class="chart" tabindex="0">{drawing}</div>'
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Code):
        return f'<pre tabindex="0">{escape(part.text)}</pre>'
    if isinstance(part, Banner):
        return f'<p class="banner" role="note">{_text(part.text)}</p>'
    if isinstance(part, Lead):
        return f'<p class="lead">{_text(part.text)}</p>'
    raise TypeError(f"no part of a report: {type(part).__name__}")


def _table(table: Table) -> str:
    rows = [list(row) for row in table.rows]
    if any(len(row) != len(table.header) for row in rows):
        raise ValueError(f"each row needs {len(table.header)} cells, as the header has")
    numeric = [all(_is_number(row[k]) for row in rows) and bool(rows) for k in range(len(table.header))]
    head = "".join(_cell("th", cell, right, ' scope="col"') for cell, right in zip(table.header, numeric, strict=True))
    lines = [
        "<tr>" + "".join(_cell("td", cell, right) for cell, right in zip(row, numeric, strict=True)) + "</tr>"
        for row in rows
    ]
    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    # A table that is wider than the page scrolls by itself, also by keyboard.
    return (
        f'<div class="table" tabindex="0"><table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(lines)
        + "\n</tbody></table></div>"
    )


def _cell(tag: str, cell: object, right: bool, more: str = "") -> str:
    side = ' class="number"' if right else ""
    return f"<{tag}{more}{side}>{_text('' if cell is None else _shown(cell))}</{tag}>"


def _is_number(cell: object) -> bool:
    if isinstance(cell, str):
        return _NUMBER.fullmatch(cell) is not None
    return cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))


_NUMBER = re.compile(r"-?[0-9][0-9,]*(\.[0-9]+)?")


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)


def _text(text: str) -> str:
    return escape(one_line(text, 20_000))


_STYLE = f"""
:root {{ color-scheme: light dark; --ink: #22262a; --soft: #5b6168; --page: #fdfdfb; --box: #f2f2ee; --line: #cfd2d4;
  --accent: #1864ab; --grid: rgba(122,127,135,.25) }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e4e4e0; --soft: #a4aab1; --page: #15181b; --box: #1f2327;
  --line: #3a4046; --accent: #7cc0ff }} }}
body {{ margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 {FONT} }}
main {{ max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 3rem }}
h1 {{ font-size: 1.4rem; margin: 0 0 .5rem }} h2 {{ font-size: 1.05rem; margin: 2rem 0 .25rem }}
p {{ margin: .4rem 0; max-width: 40rem }}
.lead {{ font-size: 1.35rem; line-height: 1.35; font-weight: 600 }}
.banner {{ border: 1px solid var(--ink); padding: .5rem .75rem }}
.chart {{ overflow-x: auto }} svg {{ width: 100%; min-width: 35rem; height: auto; display: block }}
.table {{ overflow-x: auto }} table {{ border-collapse: collapse; margin: .5rem 0; font-size: .9rem }}
caption {{ text-align: left; color: var(--soft) }}
th, td {{ text-align: left; padding: .2rem .75rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; white-space: nowrap }}
.number {{ text-align: right; font-variant-numeric: tabular-nums }}
pre {{ background: var(--box); padding: .5rem .75rem; overflow-x: auto; font-size: .85rem }}
svg text {{ fill: var(--ink); font: 12px {FONT} }} svg .soft {{ fill: var(--soft) }}
svg .grid {{ stroke: var(--grid) }} svg .axis {{ stroke: var(--line) }}
svg .accent {{ stroke: var(--accent) }} svg .grey {{ stroke: var(--soft) }} svg .ink {{ stroke: var(--ink) }}
svg .accent.dot {{ fill: var(--accent) }} svg .grey.dot {{ fill: var(--soft) }} svg .ink.dot {{ fill: var(--ink) }}
svg .band {{ stroke: none; opacity: .18 }}
svg .accent.band {{ fill: var(--accent) }} svg .grey.band {{ fill: var(--soft) }}
svg .line {{ fill: none; stroke-width: 1.8; stroke-linejoin: round }} svg .thin {{ stroke-width: 1; opacity: .45 }}
svg .dash {{ stroke-dasharray: 5 4 }} svg .thick {{ stroke-width: 3 }}
svg .ramp1 {{ stroke-opacity: .3 }} svg .ramp2 {{ stroke-opacity: .5 }} svg .ramp3 {{ stroke-opacity: .75 }}
"""
