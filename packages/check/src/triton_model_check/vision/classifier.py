"""A classifier: the best classes of the whole picture, with their scores and labels."""

from __future__ import annotations

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.builder.tensors import ModelInput, ModelOutput
from triton_model_check.vision.picture_models import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Parts,
    TaskModels,
    about_labels,
    assumptions_of_pictures,
    connected,
    decoder,
    folders,
    python_model,
)

__all__ = ["classifier"]

_MOST_CLASSES = 5


def classifier(parts: Parts) -> TaskModels:
    """Return the models of an ensemble that classifies pictures."""
    output, classes = _output_of_classes(parts)
    if parts.labels and classes > 0 and len(parts.labels) != classes:
        raise InvalidValueError(
            f"{parts.network.path}: has {classes} classes, got {len(parts.labels)} labels; write "
            "--labels with a file of one line for each class"
        )
    # Ultralytics trains classifiers without ImageNet's mean: classify_transforms of 8.4.190.
    is_ultralytics = parts.network.metadata.get("task") == "classify"
    settings = {
        "fit": "crop",
        "padding": "0",
        "mean": "0 0 0" if is_ultralytics else IMAGENET_MEAN,
        "std": "1 1 1" if is_ultralytics else IMAGENET_STD,
    }
    decode = decoder(parts, settings)
    has_softmax = parts.network.last_operators.get(output) == "Softmax"
    data_type, dims = parts.output_dims(output)
    most = min(_MOST_CLASSES, classes) if classes > 0 else _MOST_CLASSES
    top = python_model(
        parts,
        "top",
        [ModelInput(name="predictions", data_type=data_type, dims=dims)],
        [
            ModelOutput(name="scores", data_type="TYPE_FP32", dims=[most]),
            ModelOutput(name="classes", data_type="TYPE_INT32", dims=[most]),
            ModelOutput(name="labels", data_type="TYPE_STRING", dims=[most]),
        ],
        {"activation": "none" if has_softmax else "softmax"},
    )
    ensemble = connected(
        parts,
        decode,
        top,
        network_inputs={parts.picture.name: "pixels"},
        network_outputs={output: "network_predictions"},
        last_inputs={"predictions": "network_predictions"},
    )
    facts = [about_labels(parts.labels, classes if classes > 0 else None)]
    assumptions = [] if is_ultralytics else assumptions_of_pictures(settings)
    if has_softmax:
        facts.append(f'"{output}" has probabilities, as its last operator is Softmax')
    else:
        assumptions.append(f'"{output}" has logits, so that {parts.name}_top takes the softmax')
    models = folders(parts, decode, top, "name_classes.py", ensemble)
    return TaskModels(models, tuple(facts), tuple(assumptions), decode.name, parts.batch > 0)


def _output_of_classes(parts: Parts) -> tuple[str, int]:
    """Return the only output, and its number of classes; -1 if that is variable."""
    outputs = parts.network.outputs
    if len(outputs) == 1 and not parts.picture.others:
        sizes = list(outputs[0].shape or ())[1:]
        if sizes and all(size == 1 for size in sizes[1:]):
            return outputs[0].name, sizes[0]
    shapes = ", ".join(f'"{output.name}" {list(output.shape or ())}' for output in outputs)
    raise InvalidValueError(
        f"{parts.network.path}: a classifier has one output of [batch, classes] and no input "
        f"beside the picture, got {shapes}; write --task detect for a detector, or the last step "
        "yourself, with --backend python"
    )
