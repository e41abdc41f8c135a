"""Versions of this package and of what its numbers depend on, read without importing any of it."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_WATCHED = ("refusal-core", "streamlit", "plotly", "numpy", "torch", "transformers", "tokenizers", "safetensors")


def versions(packages: tuple[str, ...] = _WATCHED) -> dict[str, str]:
    """Package name to installed version, "not installed" where it is not; "python" among them."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
