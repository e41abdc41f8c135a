"""Scorecard: does each checkpoint hold what a suite asserts, and how sure is that?"""

from __future__ import annotations

from refusal_core.store import Store, default_url
from ui import cache, scorecard_view
from ui.frame import Shared, frame
from ui.scorecard_keep import Keeper


def page(shared: Shared) -> None:
    scorecard_view.draw(shared, Keeper(lambda: cache.store(default_url(), Store.open), shared.demo))


frame("scorecard", page)
