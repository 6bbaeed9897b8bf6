"""Whether the ONNX Runtime backend accepts a configuration for what the runtime says of a model.

The rules are those of onnxruntime_backend's ``ValidateInputs``, ``ValidateOutputs`` and
``CompareDimsSupported`` (onnxruntime.cc and onnxruntime_utils.cc of r24.10), which compare the
dimensions of inputs with those of the model, and the dimensions of outputs exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: The types that the backend knows in every release.
TYPES = {
    "tensor(bool)": "TYPE_BOOL",
    "tensor(uint8)": "TYPE_UINT8",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(int8)": "TYPE_INT8",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(float16)": "TYPE_FP16",
    "tensor(float)": "TYPE_FP32",
    "tensor(double)": "TYPE_FP64",
    "tensor(string)": "TYPE_STRING",
}


def has_known_types(verdict: Mapping[str, Any]) -> bool:
    """Return whether the backend knows the types of all inputs and outputs."""
    return all(kind in TYPES for _, kind, _ in [*verdict["inputs"], *verdict["outputs"]])


def misfit(config: Mapping[str, Any], verdict: Mapping[str, Any]) -> str | None:
    """Return why the backend would refuse the configuration, or ``None`` if it would not."""
    has_batches = config.get("max_batch_size", 0) > 0
    if len(config.get("input", [])) not in (0, len(verdict["inputs"])):
        return f"{len(config['input'])} inputs, the model has {len(verdict['inputs'])}"
    for direction in ("input", "output"):
        of_model = {name: (kind, shape) for name, kind, shape in verdict[f"{direction}s"]}
        for tensor in config.get(direction, []):
            reason = _tensor_misfit(tensor, of_model, has_batches, direction == "output")
            if reason is not None:
                return f"{direction} {tensor['name']}: {reason}"
    return None


def _tensor_misfit(
    tensor: Mapping[str, Any],
    of_model: Mapping[str, tuple[str, Sequence[int]]],
    has_batches: bool,
    is_exact: bool,
) -> str | None:
    if tensor["name"] not in of_model:
        return "the model has no such tensor"
    kind, shape = of_model[tensor["name"]]
    if TYPES.get(kind) != tensor["data_type"]:
        return f"{tensor['data_type']}, the model has {kind}"
    if "dims" not in tensor:
        # Completion leaves the dims out where only the runtime knows them: nothing to compare.
        return None
    reshape = tensor.get("reshape")
    dims = list(tensor["dims"] if reshape is None else reshape.get("shape", []))
    if not shape:
        return None if all(dim == 1 for dim in dims) else f"{dims}, the model has a scalar"
    expected = [-1, *dims] if has_batches else dims
    pairs = list(zip(expected, shape, strict=False))
    is_same = len(expected) == len(shape) and all(
        wanted == given or (given == -1 and not is_exact) for wanted, given in pairs
    )
    return None if is_same else f"{expected}, the model has {list(shape)}"
