"""What the Search demonstration page does apart from drawing: presets, and settings as query parameters and back.

Imports no streamlit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

from refusal_core import limits
from refusal_core.climb import Settings
from refusal_core.errors import InputError


@dataclass(frozen=True)
class Preset:
    """Settings at one click; `key` is stable, `teaches` is what to look at."""

    key: str
    title: str
    settings: Settings
    teaches: str


PRESETS: Mapping[str, Preset] = {
    preset.key: preset
    for preset in (
        Preset("plain", "First run", Settings(), "How far each seed gets, and how far the seeds lie apart."),
        Preset(
            "noisy",
            "Noisy scores",
            Settings(seeds=100, noise=0.5),
            "The search keeps the luckiest score, so its report flatters it: see what a fresh evaluation says.",
        ),
        Preset(
            "wide",
            "Wide fan-out",
            Settings(fanout=32),
            "Each move is the best of 32, but the same budget pays for fewer moves.",
        ),
        Preset("long", "Ten times the budget", Settings(budget=2_000), "What restarts buy once a search is stuck."),
        Preset(
            "many",
            "Two hundred seeds",
            Settings(seeds=200),
            "The interval of the mean shrinks; the spread of the seeds does not.",
        ),
        Preset(
            "additive",
            "No interactions",
            Settings(budget=89, interactions=0.0),
            "Without terms between neighbours, 8 × 11 + 1 evaluations surely take the greedy search to the optimum.",
        ),
    )
}

_ALWAYS_IN_LINK = ("seeds", "budget", "fanout")
_TYPES = {"int": int, "float": float, "str": str}


def preset_of(settings: Settings) -> Preset | None:
    """The preset with these settings."""
    return next((preset for preset in PRESETS.values() if preset.settings == settings), None)


def check(settings: Settings) -> None:
    """Raise InputError for a run that is too long for a page."""
    count = settings.seeds * settings.budget
    if count > limits.CLIMB_PAGE_EVALUATIONS:
        raise InputError(
            f"{settings.seeds:,} seeds of {settings.budget:,} evaluations are {count:,}",
            where="seeds and budget",
            why=f"a page runs at most {limits.CLIMB_PAGE_EVALUATIONS:,}",
            fix=f"lower one of them, or run it in a terminal: {settings.command()}",
        )


def to_params(settings: Settings) -> dict[str, str]:
    """The query parameters of `settings`: what is not at its default, and the first three."""
    given = asdict(settings).items()
    return {name: str(value) for name, value in given if name in _ALWAYS_IN_LINK or value != getattr(Settings, name)}


def from_params(params: Mapping[str, str]) -> tuple[Settings | None, list[str]]:
    """The settings that a link describes, None when it names none, and a sentence for each bad one. Never raises."""
    settings, named, ignored = Settings(), False, []
    for field in fields(Settings):
        if field.name not in params:
            continue
        try:
            settings = replace(settings, **{field.name: _TYPES[field.type](params[field.name])})
            named = True
        except (ValueError, InputError):
            shown = field.name.replace("_", " ")
            ignored.append(f"The link's value of {shown} cannot be used; the default stands in its place.")
    return (settings if named else None), ignored
