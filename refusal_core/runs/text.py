"""Bytes of unknown origin as text, and what had to be assumed for it."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from refusal_core.errors import InputError

_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_NUMBER = re.compile(r"\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*", re.ASCII)
_NOT_FINITE = {
    "nan": float("nan"),
    "inf": float("inf"),
    "infinity": float("inf"),
    "+inf": float("inf"),
    "+infinity": float("inf"),
    "-inf": float("-inf"),
    "-infinity": float("-inf"),
}


@dataclass(frozen=True)
class Decoded:
    """The text, line breaks as "\\n", without byte-order mark and NUL; and sentences on what was repaired."""

    text: str
    repairs: tuple[str, ...] = ()


def decode(data: bytes, name: str) -> Decoded:
    """UTF-8 with or without BOM, UTF-16 by its BOM or its NUL bytes, else Windows-1252, which is said.

    Raises InputError for UTF-32 and for a file of nothing but NUL bytes.
    """
    repairs: list[str] = []
    if data.startswith(_UTF32):
        raise InputError("it is UTF-32 text", where=name, fix="save it as UTF-8")
    if data and not data.strip(b"\0"):
        raise InputError(
            "it holds nothing but NUL bytes", where=name, why="a crash left it so", fix="restore it from a copy"
        )
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    elif (order := _utf16_order(data)) is not None:
        text = data.decode(order, "replace")
        repairs.append("read as UTF-16 without a byte-order mark")
    else:
        text = _eight_bit(data, repairs)
    if "\0" in text:
        text = text.replace("\0", "")
        repairs.append("NUL bytes were left out")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Decoded(text.removeprefix("\ufeff"), tuple(repairs))


def number(value: object) -> float | None:
    """A number, or text that is one ("1.604", "NaN", "-Infinity"); None for everything else, booleans too."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if isinstance(value, str):
        if _NUMBER.fullmatch(value):
            return float(value)
        return _NOT_FINITE.get(value.strip().lower())
    return None


def _eight_bit(data: bytes, repairs: list[str]) -> str:
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        if error.start >= len(data) - 3 and error.reason == "unexpected end of data":  # cut inside one character
            repairs.append("the last character is cut")
            return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "ignore")
    repairs.append("it is not UTF-8 and was read as Windows-1252")
    return data.decode("cp1252", "replace")


def _utf16_order(data: bytes) -> str | None:
    """The byte order of UTF-16 without a mark, told from where the NUL bytes of its ASCII characters are."""
    head = data[:512]
    half = len(head) // 2
    if half < 4:
        return None
    even, odd = head[0 : 2 * half : 2].count(0), head[1 : 2 * half : 2].count(0)
    if odd > 0.7 * half and not even:
        return "utf-16-le"
    return "utf-16-be" if even > 0.7 * half and not odd else None
