"""TensorBoard event files. The protocol buffers come from the package tensorboard (no TensorFlow); an extra."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from refusal_core.errors import InputError, MissingPackage
from refusal_core.jobs import Job
from refusal_core.limits import LINE_BYTES, RUN_KEYS, RUN_ROWS
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.columns import superseded
from refusal_core.runs.files import Blob
from refusal_core.runs.model import Curve, Problem
from refusal_core.runs.names import names_of
from refusal_core.runs.trackio import settings_of

FORMAT = "TensorBoard events"
MARK = b"brain.Event:"
_HEADER = struct.Struct("<QI")


def is_events(head: bytes) -> bool:
    """Whether the first record of a file is TensorBoard's version mark."""
    return MARK in head[:64] and len(head) > 12


def read_events(blob: Blob, data: bytes, job: Job | None = None) -> tuple[list[Artefact], list[Problem]]:
    """Every scalar of the file as a curve, and the text summaries that hold settings.

    Raises MissingPackage without tensorboard, InputError when nothing in it can be read.
    """
    try:
        from tensorboard.compat.proto import event_pb2
    except ImportError:
        raise MissingPackage("tensorboard", purpose="Reading event files", extra="tensorboard") from None
    points: dict[str, list[tuple[float, float, float]]] = {}
    settings: dict[str, object] = {}
    records = _Records(io.BytesIO(data), len(data))
    count = broken = 0
    for record in records:
        try:
            event = event_pb2.Event.FromString(record)
        except Exception:  # protobuf's DecodeError: its class depends on the implementation
            broken += 1
            continue
        for value in event.summary.value:
            if (number := _scalar(value)) is not None:
                if len(points) >= RUN_KEYS and value.tag not in points:
                    raise InputError(f"it holds more than {RUN_KEYS:,} scalars", where=blob.name)
                points.setdefault(value.tag, []).append((event.step, number, event.wall_time))
                count += 1
            elif (text := _text(value)) is not None:
                settings.update(_settings(value.tag, text))
        if count > RUN_ROWS:
            raise InputError(f"it holds more than {RUN_ROWS:,} values", where=blob.name)
        if job and count % 10_000 == 0:
            job.check()
    problems = []
    if records.cut or broken:
        what = "it ends in the middle of a record" if records.cut else f"{broken:,} records are damaged"
        problems.append(Problem(blob.name, f"{what}; {count:,} values were kept", "copy it again", "in part"))
    curves = tuple(_curves(points, blob.name))
    return [Artefact("history", FORMAT, blob.name, settings=settings, curves=curves, rows=count)], problems


class _Records:
    """The records of a TFRecord file: length, its checksum, data, checksum. `cut` when the last one is not whole."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._left, self.cut = stream, size, False

    def __iter__(self) -> Iterator[bytes]:
        while self._left > 0:
            header = self._stream.read(_HEADER.size)
            if len(header) < _HEADER.size:
                self.cut = True
                return
            length, _ = _HEADER.unpack(header)
            self._left -= _HEADER.size + length + 4
            if length > LINE_BYTES or self._left < -4:
                self.cut = True
                return
            record = self._stream.read(length)
            self._stream.read(4)
            self.cut = len(record) < length
            if self.cut:
                return
            yield record


def _scalar(value: object) -> float | None:
    """A scalar of the old form, or a tensor of one number that is marked as one or by no plugin."""
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return value.simple_value
    if kind != "tensor" or value.metadata.plugin_data.plugin_name not in ("scalars", ""):
        return None
    tensor = value.tensor
    for numbers in (tensor.float_val, tensor.double_val, tensor.int_val, tensor.int64_val):
        if len(numbers) == 1:
            return float(numbers[0])
    kinds = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8"}
    content = tensor.tensor_content
    if tensor.dtype in kinds and len(content) == np.dtype(kinds[tensor.dtype]).itemsize:
        return float(np.frombuffer(content, dtype=kinds[tensor.dtype])[0])
    return None


def _text(value: object) -> str | None:
    if value.metadata.plugin_data.plugin_name != "text" or len(value.tensor.string_val) != 1:
        return None
    return value.tensor.string_val[0].decode("utf-8", "replace")


def _settings(tag: str, text: str) -> dict[str, object]:
    """The Trainer writes its arguments, and the model's config, as one JSON text each."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    prefix = "" if "args" in tag or "hparams" in tag else f"{tag.partition('/')[0]}."
    return {prefix + k: v for k, v in settings_of(found).items()} if isinstance(found, dict) else {}


def _curves(points: dict[str, list[tuple[float, float, float]]], file: str) -> Iterator[Curve]:
    tags = [tag for tag in points if tag not in ("train/epoch", "epoch")]
    named = names_of(tuple(tags))
    epochs = {step: epoch for tag in ("epoch", "train/epoch") for step, epoch, _ in points.get(tag, ())}
    for tag in tags:
        steps, values, times = np.array(points[tag], dtype=np.float64).T
        yield Curve.of(
            named[tag].metric,
            values,
            steps,
            split=named[tag].split,
            dataset=named[tag].dataset,
            label=named[tag].label,
            key=tag,
            file=file,
            epochs=[epochs.get(step, np.nan) for step in steps] if epochs else None,
            times=times,
            superseded=superseded(steps),
        )
