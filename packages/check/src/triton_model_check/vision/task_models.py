"""Plans an ensemble around a network that takes a picture, for a task.

:func:`task_models` derives the configuration of the network as ``model new`` does, and leaves the
steps before and after it to ``detector`` and ``classifier``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import explained
from triton_model_check.builder.config import ModelConfig
from triton_model_check.builder.derived_config import PYTHON_SYNTAX, DerivedConfig, derive
from triton_model_check.builder.scheduling import ModelDynamicBatching
from triton_model_check.builder.tensors import DataType, ModelOutput
from triton_model_check.onnx_runtimes.asking import Asking
from triton_model_check.vision.classifier import classifier
from triton_model_check.vision.detector import detector
from triton_model_check.vision.forms import FormName, recognize, recognize_segments
from triton_model_check.vision.onnx_network import Network, read_network
from triton_model_check.vision.picture_input import picture_input
from triton_model_check.vision.picture_models import Parts, TaskModels

__all__ = ["Task", "task_models"]

Task = Literal["detect", "segment", "classify"]
#: What Triton's ONNX Runtime backend chooses if every tensor begins with a variable size.
_BATCH_OF_TRITON = 4


def task_models(
    task: Task,
    path: Path,
    name: str,
    *,
    form: FormName | None = None,
    labels: Path | None = None,
    max_batch_size: int | None = None,
    fields: Mapping[str, Any] | None = None,
    syntax: Mapping[str, str] = PYTHON_SYNTAX,
    onnx_runtime: Asking = "never",
) -> TaskModels:
    """Plan the folders of an ensemble called ``name`` around a network.

    Args:
        task: ``"detect"`` finds boxes, ``"segment"`` also a mask in each, ``"classify"`` names the
            whole picture.
        path: The ONNX file of the network, whose model is called ``NAME_network``.
        name: Name of the ensemble.
        form: What the outputs of a detector mean. Default: what is recognized.
        labels: A file with the label of one class on each line. Default: those of the metadata.
        max_batch_size: Largest batch of all models. Default: as for any ONNX file.
        fields: Fields of the network's configuration, such as ``input``.
        syntax: How the user writes what is missing.
        onnx_runtime: Whether ONNX Runtime is asked about the file.

    Raises:
        InvalidValueError: it is no ONNX network that takes a picture, not one for the task, or
            Triton does not load it.
    """
    given = dict(fields or {})

    def derived_with(batch: int | None, **more: Any) -> DerivedConfig:
        return derive(
            ModelConfig.draft,
            path,
            name=f"{name}_network",
            max_batch_size=batch,
            fields={**given, **more},
            syntax=syntax,
            onnx_runtime=onnx_runtime,
        )

    derived = derived_with(max_batch_size)
    derived.raise_faults()
    network = read_network(derived.file)
    if not derived.message.output:
        derived = _as_declared(network, derived, max_batch_size, derived_with)
    picture = picture_input(network, given)
    parts = Parts(name, derived, network, picture, _labels(network, labels))
    if task == "detect":
        return detector(parts, recognize(network, picture.width, picture.height, form))
    if task == "segment":
        return detector(parts, recognize_segments(network))
    return classifier(parts)


def _as_declared(
    network: Network,
    derived: DerivedConfig,
    max_batch_size: int | None,
    derived_with: Callable[..., DerivedConfig],
) -> DerivedConfig:
    """Derive the configuration again, with the outputs as the file declares them.

    The runtime cannot say the sizes of some networks before it runs them, and Triton adds them
    then. The steps of an ensemble must have them before.
    """
    tensors = (*network.inputs, *network.outputs)
    if any(not tensor.shape or not tensor.data_type for tensor in network.outputs):
        return derived
    batch = max_batch_size
    names = {tensor.axes[0] for tensor in tensors if tensor.axes}
    if batch is None and len(names) == 1 and all(tensor.is_batched for tensor in tensors):
        batch = _BATCH_OF_TRITON
    more: dict[str, Any] = {"output": _outputs(network, is_batched=bool(batch))}
    if batch:
        more["dynamic_batching"] = ModelDynamicBatching()
    declared = derived_with(batch, **more)
    # It would say that Triton does not batch, because the runtime's sizes are not certain.
    comments = {key: text for key, text in declared.comments.items() if key != "max_batch_size"}
    return replace(declared, comments=comments)


def _outputs(network: Network, *, is_batched: bool) -> list[ModelOutput]:
    outputs = []
    for tensor in network.outputs:
        shape = tensor.shape or ()
        dims = shape[1:] if is_batched else shape
        data_type = cast("DataType", tensor.data_type)
        outputs.append(ModelOutput(name=tensor.name, data_type=data_type, dims=dims))
    return outputs


def _labels(network: Network, path: Path | None) -> list[str]:
    """Return the labels of the classes, from a file or from the network."""
    if path is None:
        return network.labels()
    fix = "write the label of one class on each line, in UTF-8"
    with explained(path, "cannot be read", fix):
        try:
            return [line.strip() for line in path.read_text("utf-8").splitlines()]
        except UnicodeDecodeError as error:
            raise InvalidValueError(f"{path}: is not UTF-8, {error}; {fix}") from None
