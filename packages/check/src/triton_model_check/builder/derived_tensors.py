"""Batching and tensors of a configuration that is derived from a model file.

An ONNX model is completed by ``completion``, as the backend does. TorchScript files and trees do
not say enough, so the user writes the rest. The other backends complete the configuration when they
load the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.builder.derived_warmup import TENSOR_EXAMPLE
from triton_model_check.model.completion import complete_from_onnx
from triton_model_check.model.loaded_files import tree_row_size
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_files.model_file import BatchAxis, ModelFile

_TREE_MAX_BATCH_SIZE = 8192
_MOST_NAMES = 3
_TREE_EXAMPLE = {"input": "input__0", "output": "output__0", "dims": "28"}


@dataclass
class Derivation:
    """A configuration that is being derived; ``comments`` are the reasons of decisions, by field.

    ``message`` contains what the user has set, except for ``max_batch_size``. ``syntax`` is how the
    user writes each of the options. ``other_axis`` is the tensor because of which the model is not
    batched, if the user has not asked for batching.
    """

    message: Any
    file: ModelFile
    max_batch_size: int | None
    syntax: Mapping[str, str]
    comments: dict[str, str] = field(default_factory=dict)
    other_axis: BatchAxis | None = None

    def refuse_missing(self, what: str, missing: Iterable[str]) -> None:
        """Raise an error that names the options that are missing, if there are any."""
        example = _TREE_EXAMPLE if self.file.format == "tree" else TENSOR_EXAMPLE
        hints = [self.syntax[each].format(**example) for each in missing]
        if hints:
            hint = f"set {' and '.join(hints)}"
            if self.file.format == "onnx" and "onnx_runtime" in self.syntax:
                hint = f"set {self.syntax['onnx_runtime']} to ask ONNX Runtime, or {hint}"
            raise InvalidValueError(f"{self.file.path}: the file does not say {what}; {hint}")


def derive_tensors(derivation: Derivation) -> None:
    """Set batching, inputs and outputs of the message, and the comments."""
    completions: dict[str, Callable[[Derivation], None]] = {
        "onnx": _derive_onnx,
        "torchscript": _derive_torchscript,
        "tree": _derive_tree,
    }
    derive = completions.get(derivation.file.format, _leave_to_backend)
    derive(derivation)
    message = derivation.message
    if derive is not _leave_to_backend and message.output and not message.max_batch_size:
        _refuse_dynamic_batching(derivation)


def _refuse_dynamic_batching(derivation: Derivation) -> None:
    if derivation.message.HasField("dynamic_batching"):
        syntax = derivation.syntax
        raise InvalidValueError(
            f"{derivation.file.path}: {syntax['dynamic_batching']} has no effect, because "
            f"max_batch_size is 0; set {syntax['max_batch_size']} if the model has a batch "
            "dimension, or leave the option out"
        )


# ONNX.


def _derive_onnx(derivation: Derivation) -> None:
    """Complete the configuration of an ONNX model from its file."""
    _refuse_batching(derivation)
    axis = derivation.file.other_batch_axis
    if derivation.max_batch_size is None and axis is not None:
        derivation.max_batch_size = 0
        derivation.other_axis = axis
    file, size = derivation.file, derivation.max_batch_size
    if file.has_batch_dimension is None and size is None:
        _leave_to_backend(derivation)
        return
    completed = _completed(derivation)
    # If no outputs are written, Triton replaces a max_batch_size of 0 where the model has batches.
    is_kept = size != 0 or file.has_batch_dimension is False
    if not file.has_inferred_shapes and is_kept and not derivation.message.output:
        del completed.output[:]
        reasons = ", ".join(file.not_checked) or "output shapes not known"
        derivation.comments["output"] = (
            f"output is left out, so that Triton completes it. Reason: {reasons}."
        )
    elif not derivation.message.output:
        _refuse_unknown_outputs(derivation)
    for side in ("input", "output"):
        _merge(derivation, side, completed)
    derivation.message.CopyFrom(completed)
    derivation.comments.update(_onnx_comments(derivation))


def _refuse_unknown_outputs(derivation: Derivation) -> None:
    outputs = derivation.file.outputs
    unknown = [each for each in outputs if each.shape is None and not each.has_certain_shape]
    if unknown:
        names = _listed(each.name for each in unknown)
        derivation.refuse_missing(f"the shape of {names} with certainty", ["output"])


def _refuse_batching(derivation: Derivation) -> None:
    """Raise ``InvalidValueError`` for batching that the model does not support."""
    file, size = derivation.file, derivation.max_batch_size
    if size and file.has_batch_dimension is False:
        names = _listed(each.name for each in file.fixed_tensors)
        raise InvalidValueError(
            f"{file.path}: the model does not support batching, got "
            f"{derivation.syntax['max_batch_size']} {size}, but the first dimension of {names} is "
            "fixed; leave the option out, or export the model with a dynamic batch dimension"
        )


def _completed(derivation: Derivation) -> Any:
    """Complete the configuration as the backend does if the user writes no tensors."""
    draft = new_model_config()
    draft.CopyFrom(derivation.message)
    del draft.input[:], draft.output[:]
    draft.max_batch_size = derivation.max_batch_size or 0
    file = derivation.file
    if derivation.max_batch_size is not None:
        file = replace(file, has_batch_dimension=derivation.max_batch_size > 0)
    completed = complete_from_onnx(draft, file, draft.name)
    is_given = bool(derivation.message.dynamic_batching.preferred_batch_size)
    if completed.HasField("dynamic_batching") and not is_given:
        # Triton sets it when it loads the model; in the file it would not follow a change of
        # max_batch_size.
        completed.dynamic_batching.ClearField("preferred_batch_size")
    return completed


def _merge(derivation: Derivation, side: str, completed: Any) -> None:
    """Replace what the file says about a tensor by what the user has written about it."""
    tensors = {tensor.name: tensor for tensor in getattr(completed, side)}
    names = [each.name for each in getattr(derivation.file, f"{side}s")]
    for written in getattr(derivation.message, side):
        if written.name in tensors:
            _replace(tensors[written.name], written)
        elif written.name in names:
            getattr(completed, side).add().CopyFrom(written)
        else:
            hint = did_you_mean(written.name, names, f"its {side}s are {quoted(names)}")
            raise InvalidValueError(
                f"{derivation.file.path}: the model has no {side} of that name, got "
                f'"{written.name}"; {hint}'
            )


def _replace(tensor: Any, written: Any) -> None:
    for descriptor, _ in written.ListFields():
        tensor.ClearField(descriptor.name)
        if descriptor.name == "dims":
            tensor.ClearField("reshape")
    tensor.MergeFrom(written)


def _onnx_comments(derivation: Derivation) -> Iterator[tuple[str, str]]:
    message, file = derivation.message, derivation.file
    yield "max_batch_size", _batching_comment(derivation)
    yield "input", " ".join(_input_comments(message, file))
    if message.HasField("dynamic_batching") and not message.dynamic_batching.ListFields():
        yield "dynamic_batching", _DYNAMIC_BATCHING


_DYNAMIC_BATCHING = "Triton combines requests that arrive at the same time into batches."


def _batching_comment(derivation: Derivation) -> str:
    """Return the comment that explains ``max_batch_size``."""
    size = derivation.message.max_batch_size
    file = derivation.file
    axis = derivation.other_axis
    if axis is not None:
        return (
            f'max_batch_size is 0: "{axis.tensor}" begins with "{axis.first}", and its dimension '
            f'"{axis.name}" is not the first one. With batching, Triton would cut the first '
            "dimension to the size of the request."
        )
    if derivation.max_batch_size == 0:
        return "max_batch_size is 0, as requested: dims contain all dimensions of the model."
    if not file.has_batch_dimension:
        names = _listed(each.name for each in file.fixed_tensors)
        return (
            "max_batch_size is 0: Triton batches only if every tensor begins with a dimension of "
            f"variable size, unlike {names}. "
            "To batch, export the model with a dynamic first dimension."
        )
    origin = "as requested" if derivation.max_batch_size else "the default of Triton"
    return (
        f"max_batch_size is {size}, {origin}: every tensor begins with a dimension of variable "
        "size, which is taken to be the batch. If it is not, "
        "run the command again with --max-batch-size 0."
    )


def _input_comments(message: Any, file: ModelFile) -> Iterator[str]:
    """Yield what a comment above the inputs explains."""
    if message.max_batch_size:
        yield "dims do not contain the batch dimension."
    if any(-1 in tensor.dims for tensor in (*message.input, *message.output)):
        yield "-1 is a variable size."

    required = [tensor for tensor in (*file.inputs, *file.outputs) if not tensor.is_optional]
    scalars = [tensor.name for tensor in required if not tensor.shape]
    if scalars:
        yield f"Triton writes the scalar {_listed(scalars)} with dims [1]."
    if message.max_batch_size and any(tensor.HasField("reshape") for tensor in message.input):
        yield "A tensor that is only the batch dimension has dims [1], which reshape removes."

    written = {tensor.name for tensor in message.input}
    optional = [tensor.name for tensor in file.inputs if tensor.is_optional]
    left_out = [name for name in optional if name not in written]
    if left_out:
        yield f"Left out, because the model has default values: {_listed(left_out)}."


def _listed(given: Iterable[str]) -> str:
    """Return the first names in quotes, and how many more there are."""
    names = list(given)
    more = len(names) - _MOST_NAMES
    if more <= 0:
        return quoted(names)
    shown = ", ".join(f'"{name}"' for name in names[:_MOST_NAMES])
    return f"{shown} and {more} more"


# Formats that do not say enough.


def _derive_torchscript(derivation: Derivation) -> None:
    """Complete the configuration of a TorchScript model, whose file has no types."""
    message = derivation.message
    arguments = derivation.file.inputs
    missing = [side for side in ("input", "output") if not getattr(message, side)]
    forward = f" (forward takes {quoted(each.name for each in arguments)})" if arguments else ""
    derivation.refuse_missing(f"the data types and dims of its tensors{forward}", missing)
    message.max_batch_size = derivation.max_batch_size or 0
    if derivation.max_batch_size is None:
        derivation.comments["max_batch_size"] = _UNKNOWN_BATCHING
    derivation.comments["input"] = (
        "The file does not contain data types and dims, so they are not checked."
    )


_UNKNOWN_BATCHING = (
    "max_batch_size is 0, because the file does not say whether the model accepts batches. If it "
    "does, run the command again with --max-batch-size, and dims without the batch dimension."
)


def _derive_tree(derivation: Derivation) -> None:
    """Complete the configuration of a model of trees from its file."""
    message = derivation.message
    file = derivation.file
    size = derivation.max_batch_size
    message.max_batch_size = _TREE_MAX_BATCH_SIZE if size is None else size
    for given in file.inputs:
        dims = _without_rows(message, given.shape or ())
        _refuse_other_features(derivation, given.name, dims)
        if not message.input:
            message.input.add(name=given.name, data_type=given.data_type, dims=dims)
    if "output_class" not in message.parameters and file.is_classifier is not None:
        message.parameters["output_class"].string_value = str(file.is_classifier).lower()
    missing = {"input": "the number of features"} if not message.input else {}
    if "output_class" not in message.parameters:
        missing["output_class"] = "whether the model is a classifier"
    derivation.refuse_missing(", and ".join(missing.values()), missing)
    if (
        message.parameters["output_class"].string_value == "true"
        and "threshold" not in message.parameters
    ):
        message.parameters["threshold"].string_value = "0.5"
        derivation.comments["parameters"] = (
            "The FIL backend requires threshold. It is for two classes."
        )
    if not message.output:
        dims = _without_rows(message, (-1, 1))
        message.output.add(name="output__0", data_type=message.input[0].data_type, dims=dims)
        derivation.comments["output"] = (
            "One value for each row: a class or a prediction. "
            "With predict_proba there is one for each class."
        )
    _batch_trees(derivation)


def _batch_trees(derivation: Derivation) -> None:
    """Let Triton batch requests for a model of trees, and explain it."""
    message, comments = derivation.message, derivation.comments
    if derivation.max_batch_size is None:
        comments["max_batch_size"] = "The FIL backend is fastest with large batches of rows."
    if message.max_batch_size > 1 and message.WhichOneof("scheduling_choice") is None:
        message.dynamic_batching.SetInParent()
        comments["dynamic_batching"] = _DYNAMIC_BATCHING
    comments["input"] = (
        "input__0 contains one row: its size is the number of features."
        if message.max_batch_size
        else "input__0 contains rows: the size of a row is the number of features."
    )


def _without_rows(message: Any, shape: Sequence[int]) -> list[int]:
    """Return the dims of a tensor whose first dimension is the number of rows."""
    return list(shape[1:] if message.max_batch_size else shape)


def _refuse_other_features(derivation: Derivation, name: str, dims: Sequence[int]) -> None:
    """Refuse an input that does not have the features of the file;
    the FIL backend does not compare them.
    """
    for written in derivation.message.input:
        size = tree_row_size(written, derivation.message.max_batch_size)
        if written.name == name and size not in (None, dims[-1]):
            syntax = derivation.syntax["input"]
            given, fix = (
                syntax.format(input=name, dims=",".join(map(str, each)))
                for each in (written.dims, dims)
            )
            raise InvalidValueError(
                f"{derivation.file.path}: the model has {dims[-1]} features, but {given} has "
                f"{size} values for each row; write {fix}, or leave the option out"
            )


def _leave_to_backend(derivation: Derivation) -> None:
    """Leave out the tensors that the backend completes when it loads the model."""
    message = derivation.message
    if derivation.max_batch_size is not None:
        message.max_batch_size = derivation.max_batch_size
    sides = [side for side in ("input", "output") if not getattr(message, side)]
    if sides:
        derivation.comments[sides[0]] = (
            f"{' and '.join(sides)} left out: "
            "the backend completes this from the model when it loads it."
        )
