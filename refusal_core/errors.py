"""The two errors that reach a person: the input is wrong, or the work could not be done."""

from __future__ import annotations


class RefusalCoreError(Exception):
    """Base of the errors whose text is written for the reader; `str()` is one sentence."""

    exit_code = 1


_WHERE = 300  # characters: what comes after it is what helps


class InputError(RefusalCoreError):
    """The caller's input is wrong.

    `what` is wrong, `where` (file, member, row, key), `why` (what was expected), `fix` (how to mend it).
    The message is one line: control characters and line breaks of user text in it are replaced.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", why: str = "", fix: str = "") -> None:
        self.what, self.why, self.fix = (one_line(part) for part in (what, why, fix))
        self.where = one_line(where, _WHERE)
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.why:
            text += f"; {self.why}"
        if self.fix:
            text += f"; {self.fix}"
        return text if text.endswith((".", "?", "!")) else text + "."


class WorkError(RefusalCoreError):
    """The input is right, but the work was impossible: network, disk, memory, a missing optional package."""


class MissingPackage(WorkError):
    """An optional package is not installed; names the pip line that brings it."""

    def __init__(self, package: str, *, purpose: str, extra: str) -> None:
        super().__init__(f'{purpose} needs the package {package}: pip install -e ".[{extra}]".')


class Cancelled(RefusalCoreError):
    """The user stopped the work."""

    exit_code = 130

    def __init__(self, text: str = "Stopped by the user.") -> None:
        super().__init__(text)


def one_line(text: str, limit: int = 600) -> str:
    """`text` with control characters, line breaks and bidirectional marks as spaces, cut to `limit` characters."""
    clean = "".join(" " if _breaks_a_line(c) else c for c in str(text))
    clean = clean.encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


_MARKS = (0x061C, 0x200E, 0x200F)  # the bidirectional marks that stand alone


def _breaks_a_line(character: str) -> bool:
    code = ord(character)
    return code < 32 or 127 <= code < 160 or 0x2028 <= code <= 0x202E or 0x2066 <= code <= 0x2069 or code in _MARKS
