"""Compares a configuration with an ONNX model, with the messages of the backend.

Source: onnxruntime_backend r24.10, src/onnxruntime.cc, ValidateInputs and ValidateOutputs.
"""

from __future__ import annotations

from typing import Dict, Sequence

from .model_config import Config, TensorInfo, count_inputs, dims_of

_WITHOUT_DATA_TYPE = frozenset({"TYPE_INVALID", "TYPE_BF16"})


def check_inputs(
    config: Config, required: Sequence[TensorInfo], optional: Sequence[TensorInfo]
) -> None:
    """Raise ``ValueError`` if the configuration's inputs do not fit.

    ``optional`` ones have a default.
    """
    model = config["name"]
    expected = count_inputs(config)
    if expected != len(required):
        raise ValueError(
            f"unable to load model '{model}', configuration expects {expected} inputs, "
            f"model provides {len(required)}"
        )
    known = {given.name: given for given in (*required, *optional)}
    _check_controls(config, known)
    for tensor in config["input"]:
        if tensor.get("optional") and config["max_batch_size"]:
            raise ValueError(
                f"unable to load model '{model}', optional input '{tensor['name']}' is not "
                "supported for models that support batching"
            )
        found = _find(tensor, known, "input")
        _check_type(model, tensor, found, "input")
        if tensor.get("allow_ragged_batch"):
            _check_ragged(model, found)
        else:
            _check_dims(config, tensor, found, is_exact=False)


def check_outputs(config: Config, outputs: Sequence[TensorInfo]) -> None:
    """Raise ``ValueError`` if the configuration's outputs do not fit. Outputs may be left out."""
    known = {output.name: output for output in outputs}
    computed = set()
    for entry in config.get("batch_output", []):
        computed.update(entry["target_name"])
    for tensor in config["output"]:
        found = _find(tensor, known, "output")
        _check_type(config["name"], tensor, found, "output")
        if tensor["name"] not in computed:
            _check_dims(config, tensor, found, is_exact=True)


def _find(tensor: Config, known: Dict[str, TensorInfo], side: str) -> TensorInfo:
    if tensor["name"] not in known:
        raise ValueError(
            f"unexpected inference {side} '{tensor['name']}', "
            f"allowed {side}s are: {', '.join(known)}"
        )
    return known[tensor["name"]]


def _check_controls(config: Config, known: Dict[str, TensorInfo]) -> None:
    """Each control of a sequence is an input with one value for each request."""
    for control in config.get("sequence_batching", {}).get("control_input", []):
        found = _find(control, known, "input")
        shape = found.shape[1:] if config["max_batch_size"] else found.shape
        if shape not in ((1,), (-1,)):
            raise ValueError(
                f"unable to load model '{config['name']}', sequence control '{found.name}' must "
                f"have shape [1], model provides {list(shape)}"
            )
        for entry in control["control"]:
            wanted = _control_type(entry)
            if wanted != found.data_type:
                raise ValueError(
                    f"unable to load model '{config['name']}', configuration expects datatype "
                    f"{wanted} for sequence control '{found.name}', "
                    f"model provides {found.data_type}"
                )


def _control_type(control: Config) -> str:
    """Return the data type of a control of a sequence, such as that of its two values."""
    types = {"int32": "TYPE_INT32", "fp32": "TYPE_FP32", "bool": "TYPE_BOOL"}
    for name, data_type in types.items():
        if control.get(f"{name}_false_true"):
            return data_type
    return str(control["data_type"])


def _check_type(model: str, tensor: Config, found: TensorInfo, side: str) -> None:
    if tensor["data_type"] in _WITHOUT_DATA_TYPE:
        raise ValueError(
            f"unsupported datatype {tensor['data_type']} for "
            f"{side} '{found.name}' for model '{model}'"
        )
    if tensor["data_type"] != found.data_type:
        raise ValueError(
            f"unable to load model '{model}', configuration expects datatype {tensor['data_type']} "
            f"for {side} '{found.name}', model provides {found.data_type or 'TYPE_INVALID'}"
        )


def _check_ragged(model: str, found: TensorInfo) -> None:
    if found.shape != (-1,):
        raise ValueError(
            f"unable to load model '{model}', configuration expects model provides input with "
            f"shape [-1] for ragged input '{found.name}', model provides {list(found.shape)}"
        )


def _check_dims(config: Config, tensor: Config, found: TensorInfo, *, is_exact: bool) -> None:
    """Check the dims of the configuration against the shape in the model, as the backend does.

    ``is_exact`` allows no -1 for a size that the model knows.

    Raises:
        ValueError: the backend would not load the model; the message is its own.
    """
    where = f"model '{config['name']}', tensor '{found.name}'"
    given = dims_of(tensor)
    if not found.shape:
        if any(size != 1 for size in given):
            raise ValueError(
                f"{where}: scalar tensor, should only provide 1 in model configuration"
            )
        return
    if config["max_batch_size"]:
        if found.shape[0] != -1:
            raise ValueError(
                f"{where}: for the model to support batching the shape should have at least 1 "
                "dimension and the first dimension must be -1; "
                f"but shape expected by the model is {list(found.shape)}"
            )
        given = [-1, *given]

    is_equal = len(given) == len(found.shape)
    for size, size_in_model in zip(given, found.shape):
        is_any = size_in_model == -1 and not is_exact
        if size != size_in_model and not is_any:
            is_equal = False
    if not is_equal:
        raise ValueError(
            f"{where}: the model expects {len(found.shape)} dimensions (shape {list(found.shape)}) "
            f"but the model configuration specifies {len(given)} dimensions (shape {given})"
        )
