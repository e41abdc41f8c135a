"""What a file holds, before its activations are read: members, likely names, layers, metadata, labels, categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from refusal_core.activations.columns import as_metadata, as_texts, label_texts, read_column
from refusal_core.activations.container import Container, open_container
from refusal_core.activations.header import Header, read_header
from refusal_core.activations.npz import MEANS, METADATA, NAMES, OTHER_NAMES, layer_names
from refusal_core.activations.reading import Source
from refusal_core.errors import InputError
from refusal_core.limits import LABELS_LISTED


@dataclass(frozen=True)
class Held:
    """One member: its key, shape, and the name of its type."""

    key: str
    shape: tuple[int, ...]
    dtype: str
    kind: str  # numpy's letter: f, i, u, b, U, S, V
    bytes_each: int


class Peek:
    """The members of a file by their headers; labels and categories are read when they are asked for."""

    def __init__(self, source: Source, name: str) -> None:
        """Raises InputError for all that is no sound NPZ of plain arrays, WorkError when it cannot be read."""
        self.name = name
        self._container: Container = open_container(source, name)
        self.members: Mapping[str, Held] = {
            key: _held(key, read_header(self._container, member))
            for key, member in self._container.members.items()
            if member.info.filename.endswith(".npy")
        }

    def guess(self) -> dict[str, str]:
        """Our names to members that are called so, or by a name that exporters are known to use."""
        found = {}
        for ours in NAMES:
            names = (ours, *OTHER_NAMES[ours])
            if key := next((key for key in names if key in self.members and key not in found.values()), None):
                found[ours] = key
        return found

    def is_ready(self) -> bool:
        """Whether all four members have our names."""
        return all(ours in self.members for ours in NAMES)

    def layers(self, key: str) -> int | None:
        """The length of the layer axis of [examples, layers, dimensions], None without one."""
        shape = self.members[key].shape
        return shape[1] if len(shape) == 3 else None

    def layer_names(self, key: str) -> tuple[str, ...] | None:
        """What the file calls its layers, None when it does not say."""
        layers = self.layers(key)
        return layer_names(self._container, layers) if layers else None

    def needs_bits(self, key: str) -> bool:
        """Whether it must be said what the two bytes of a value are; not when the file itself says so."""
        held = self.members[key]
        return held.bytes_each == 2 and held.kind in "Viu" and "bits" not in self.members

    def metadata(self) -> dict[str, str]:
        """What the file says of model, layer, pooling and the meaning of label 1."""
        found = {}
        for key in (*METADATA, MEANS):
            if key in self.members and (text := as_metadata(self._column(key))):
                found[key] = text
        return found

    def labels(self, key: str) -> tuple[str, ...]:
        """The distinct labels as text; empty when there are more than LABELS_LISTED, or none that are plain."""
        found = label_texts(self._column(key))
        return found if len(found) <= LABELS_LISTED else ()

    def categories(self, key: str) -> dict[str, int]:
        """Rows of each category, sorted by name. Raises InputError for values that are no texts."""
        texts = as_texts(self._column(key), f'{self.name}, member "{key}"')
        return dict(sorted(Counter(texts).items()))

    def _column(self, key: str):
        if key not in self.members:
            raise InputError(f'it has no member "{key}"', where=self.name, fix="choose another")
        return read_column(self._container, self._container.members[key])


def _held(key: str, header: Header) -> Held:
    return Held(key, header.shape, header.dtype.name, header.dtype.kind, header.dtype.itemsize)
