"""The curves of a training in a local Trackio store. Nothing is sent anywhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refusal_core.errors import WorkError
from refusal_core.training.settings import Settings

if TYPE_CHECKING:
    from transformers import TrainerCallback

# Any of these in the environment would make Trackio a client of some server.
_REMOTE = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL", "TRACKIO_BUCKET_ID", "TRACKIO_DATASET_ID", "TRACKIO_WEBHOOK_URL")


@contextmanager
def _local_only(store: Path) -> Iterator[None]:
    """The environment in which Trackio writes to `store` and knows no server."""
    changed = {"TRACKIO_DIR": str(store), **dict.fromkeys(_REMOTE)}
    before = {name: os.environ.get(name) for name in changed}

    def put(values: dict[str, str | None]) -> None:
        for name, value in values.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    put(changed)
    try:
        yield
    finally:
        put(before)


def tracker(project: str, name: str, store: Path, settings: Settings) -> TrainerCallback:
    """Writes what the Trainer logs to the run `name` of `project` in `store`; a resumed run goes on there."""
    from transformers import TrainerCallback

    with _local_only(store):
        import trackio
        import trackio.utils

    if Path(trackio.utils.TRACKIO_DIR) != store:  # it reads the setting once, when it is imported
        raise WorkError("Trackio was loaded with another store; start a new process for this training.")

    class Tracker(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            with _local_only(store):
                self._run = trackio.init(
                    project=project,
                    name=name,
                    config=asdict(settings),
                    resume="allow",
                    embed=False,
                    auto_log_gpu=False,
                    auto_log_cpu=False,
                )

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            part = {key.removeprefix("eval_"): value for key, value in logs.items()}
            where = "eval" if any(key.startswith("eval_") for key in logs) else "train"
            numbers = {f"{where}/{key}": value for key, value in part.items() if isinstance(value, int | float)}
            trackio.log({**numbers, "train/global_step": state.global_step}, step=state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            trackio.finish()

    return Tracker()
