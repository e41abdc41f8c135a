"""A loaded classifier in 8-bit integers, through ONNX Runtime: faster, and a little different in its answers.

The graph is made from the model in memory: no file of the checkpoint but its safetensors is read, and what lies in a
temporary folder meanwhile is removed.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from refusal_core.errors import InputError, MissingPackage

if TYPE_CHECKING:
    import torch

NOTE = (
    "int8 weights (dynamic quantisation): for speed, not for published numbers; labels near a tie may differ from "
    "float32's, a single probability may move far, and an answer depends a little on the rows beside it."
)
PRECISION = "int8"
PACKAGES = ("onnx", "onnxruntime")
OPSET = 18
_TRIED_LENGTH = 300  # tokens; more than a window of local attention
_CLOSE = 1e-3  # logits of the float32 graph and of the model
_MOST_BYTES = 2_000_000_000  # one graph file


def check_packages() -> None:
    """Raise MissingPackage when a package of the extra is absent."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingPackage(package, purpose="An int8 classifier", extra="int8")


def quantised(
    model: torch.nn.Module, names: tuple[str, ...], *, pad: int, longest: int, where: str
) -> Callable[..., SimpleNamespace]:
    """`model` with int8 weights: called with the tensors `names` by name, it answers an object with `.logits`.

    Linear layers are quantised, each output by its own scale, in 7 bits: 8 overflow on processors without VNNI.
    Embeddings stay float32. `pad` and `longest` (tokens) are those of its inputs. Raises MissingPackage, and InputError
    for a model whose graph is not the model.
    """
    check_packages()
    if sum(p.numel() * p.element_size() for p in model.parameters()) > _MOST_BYTES:
        raise InputError("the checkpoint is too large for int8", where=where, fix="run it without int8")
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with TemporaryDirectory(prefix="int8-") as folder, _logging_left_alone():
        exact, prepared, small = (Path(folder, f"{name}.onnx") for name in ("exact", "prepared", "small"))
        try:
            exact.write_bytes(_graph(model, names))
            _check(_Session(exact, names), model, names, pad, min(longest, _TRIED_LENGTH))
            quant_pre_process(exact, prepared, skip_optimization=True, skip_symbolic_shape=True)
            quantize_dynamic(
                prepared,
                small,
                op_types_to_quantize=["MatMul"],
                weight_type=QuantType.QInt8,
                per_channel=True,
                reduce_range=True,
                extra_options={"MatMulConstBOnly": True},
            )
            return _Session(small, names)
        except MemoryError:
            raise
        except Exception as problem:
            raise InputError(
                f"it cannot be turned into int8 ({type(problem).__name__}: {problem})",
                where=where,
                fix="run it without int8",
            ) from problem


@contextmanager
def _logging_left_alone() -> Iterator[None]:
    """ONNX Runtime logs through the root logger, which gives that a handler of its own where it has none."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _graph(model: torch.nn.Module, names: tuple[str, ...]) -> bytes:
    """The model as an ONNX graph in float32, of any batch and length."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return self.model(**dict(zip(names, inputs, strict=True))).logits

    example = tuple(torch.ones(2, 9, dtype=torch.int64) for _ in names)
    written = io.BytesIO()
    with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
        warnings.simplefilter("ignore")
        # The older of torch's two exporters: it needs no further package and takes a second instead of ten.
        torch.onnx.export(
            Logits().eval(),
            example,
            written,
            input_names=list(names),
            output_names=["logits"],
            dynamic_axes={name: {0: "batch", 1: "length"} for name in names},
            opset_version=OPSET,
            dynamo=False,
        )
    return written.getvalue()


def _check(
    graph: Callable[..., SimpleNamespace], model: torch.nn.Module, names: tuple[str, ...], pad: int, length: int
) -> None:
    """Raise ValueError when the graph answers otherwise than the model: exporting follows one input, of one shape."""
    import torch

    size = model.get_input_embeddings().num_embeddings
    ids = torch.from_numpy(np.random.default_rng(0).integers(size, size=(3, length)))
    mask, types = torch.ones_like(ids), torch.zeros_like(ids)
    ids[ids == pad] = (pad + 1) % size
    ids[1, length // 2 :], mask[1, length // 2 :] = pad, 0
    types[:, length // 3 :] = 1
    tensors = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    inputs = {name: tensors[name] for name in names}
    with torch.inference_mode():
        wanted = model(**inputs).logits
    if not torch.allclose(graph(**inputs).logits, wanted, rtol=_CLOSE, atol=_CLOSE):
        raise ValueError("its ONNX graph answers otherwise than the model")


class _Session:
    """An ONNX graph, called as the model is. It computes on as many threads as torch does."""

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        import onnxruntime
        import torch

        onnxruntime.disable_telemetry_events()  # its builds for Windows have some
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
        kept = {given.name for given in self._session.get_inputs()}  # an input that changes nothing is not in the graph
        self._names = [name for name in names if name in kept]

    def __call__(self, **inputs: torch.Tensor) -> SimpleNamespace:
        import torch

        given: Mapping[str, np.ndarray] = {name: inputs[name].numpy() for name in self._names}
        try:
            [logits] = self._session.run(["logits"], given)
        except Exception as problem:
            if "allocat" in str(problem):
                raise MemoryError(str(problem)) from problem
            raise
        return SimpleNamespace(logits=torch.from_numpy(logits))
