"""Direction study: is there a refusal direction in these activations, and does it hold on unseen categories?"""

from __future__ import annotations

from refusal_core.store import Store, default_url
from ui import cache, study_view
from ui.frame import Shared, frame
from ui.study_keep import Keeper


def page(shared: Shared) -> None:
    study_view.draw(shared, Keeper(lambda: cache.store(default_url(), Store.open), shared.demo))


frame("study", page)
