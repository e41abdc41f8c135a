"""`python -m refusal_core.heldout`: see `refusal_core.commands.heldout`."""

from __future__ import annotations

from collections.abc import Sequence

from refusal_core.commands.entry import leave, main_of, starting

if __name__ == "__main__":
    starting()

from refusal_core.commands import heldout  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code: 0 done, 1 impossible, 2 wrong input, 130 stopped by the user."""
    return main_of(heldout, "python -m refusal_core.heldout", arguments)


if __name__ == "__main__":
    leave(main())
