"""A table of prompts, joined to the examples of a study by their id."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from refusal_core.activations.columns import label_text
from refusal_core.errors import InputError
from refusal_core.exchange_files import read_rows
from refusal_core.limits import STUDY_PROMPTS

COLUMNS = ("id", "prompt")


def read_prompts(source: Path | str | BinaryIO, name: str | None = None) -> dict[str, str]:
    """Prompts by id from JSON lines, a JSON list, CSV or Parquet with the columns `id` and `prompt`.

    Raises InputError for a file without them, for a row that cannot be read, for more than STUDY_PROMPTS rows, and for
    two prompts of one id.
    """
    where = name or getattr(source, "name", None) or Path(str(source)).name
    found: dict[str, str] = {}
    for row in read_rows(source, name=name, names=COLUMNS):
        if row.error is not None or row.values is None:
            raise InputError(row.error or "the row is empty", where=f"{where}, line {row.line}", fix="mend that row")
        lacking = [column for column in COLUMNS if row.values.get(column) is None]
        if lacking:
            keys = ", ".join(f'"{key}"' for key in list(row.values)[:12])
            raise InputError(
                f'it has no "{lacking[0]}"',
                where=f"{where}, line {row.line}",
                why=f"it holds {keys or 'nothing'}",
                fix="name the columns id and prompt",
            )
        key, prompt = label_text(row.values["id"]), str(row.values["prompt"])
        if found.get(key, prompt) != prompt:
            raise InputError(
                f'the id "{key}" has two prompts', where=f"{where}, line {row.line}", fix="keep one row an id"
            )
        found[key] = prompt
        if len(found) > STUDY_PROMPTS:
            raise InputError(
                f"there are more than {STUDY_PROMPTS:,} rows", where=where, fix="give those of the test file"
            )
    if not found:
        raise InputError("there are no rows", where=where, fix="give a table with the columns id and prompt")
    return found
