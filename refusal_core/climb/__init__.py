"""The search demonstration: a local search over a simulated token policy whose best sequence is known exactly."""

from refusal_core.climb.demonstration import Demonstration, demonstrate
from refusal_core.climb.settings import Settings

__all__ = ["Demonstration", "Settings", "demonstrate"]
