"""What the tasks of pictures share: decoding, Python models, and the folders around a network.

The Python models are the files of ``code``, as they are; everything that differs between networks
is a parameter in their ``config.pbtxt``, where a user changes it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.builder.config import ModelConfig
from triton_model_check.builder.derived_config import DerivedConfig
from triton_model_check.builder.ensemble import Ensemble
from triton_model_check.builder.instances import ModelInstanceGroup
from triton_model_check.builder.scheduling import ModelDynamicBatching
from triton_model_check.builder.tensors import DataType, ModelInput, ModelOutput
from triton_model_check.model_repository.new_model import NewModel
from triton_model_check.vision.onnx_network import Network
from triton_model_check.vision.picture_input import PictureInput

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Parts",
    "TaskModels",
    "about_labels",
    "assumptions_of_pictures",
    "connected",
    "decoder",
    "folders",
    "python_model",
]

#: Mean and deviation of ImageNet, with which torchvision and RF-DETR are trained.
IMAGENET_MEAN = "0.485 0.456 0.406"
IMAGENET_STD = "0.229 0.224 0.225"
#: A picture of 100 megapixels takes 300 MB once it is decoded.
_MOST_PIXELS = "100000000"


@dataclass(frozen=True, slots=True)
class TaskModels:
    """The folders to create.

    Args:
        models: The folders; the last is the ensemble.
        facts: What was recognized, a sentence each.
        assumptions: What was assumed, a sentence each; the user compares them with the training.
        python_model: Name of the model that needs the package pillow.
        is_batched: Whether a request has a batch of pictures, and not exactly one.
    """

    models: tuple[NewModel, ...]
    facts: tuple[str, ...]
    assumptions: tuple[str, ...]
    python_model: str
    is_batched: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """What both tasks know of the network."""

    name: str
    derived: DerivedConfig
    network: Network
    picture: PictureInput
    labels: Sequence[str]

    @property
    def config(self) -> ModelConfig:
        return ModelConfig.from_message(self.derived.message)

    @property
    def batch(self) -> int:
        """The largest batch; 0 if the network takes one picture."""
        return int(self.derived.message.max_batch_size)

    def dims(self, *sizes: int) -> list[int]:
        """Return the dims of a tensor, with a batch of 1 if Triton does not batch."""
        return list(sizes) if self.batch else [1, *sizes]

    def output_dims(self, name: str) -> tuple[DataType, list[int]]:
        """Return the data type and the dims of an output of the network."""
        for output in self.config.output:
            if output.name == name:
                return output.data_type, list(output.dims)
        raise InvalidValueError(
            f'{self.network.path}: the data type and the sizes of its output "{name}" are not '
            "known; add --onnx-runtime fetch, or write them with --output"
        )


def decoder(parts: Parts, settings: Mapping[str, str], *, with_size: bool = False) -> ModelConfig:
    """Return the configuration of the model that decodes pictures."""
    picture = parts.picture
    outputs = [
        ModelOutput(name="pixels", data_type=picture.data_type, dims=parts.dims(*picture.dims)),
        ModelOutput(name="placement", data_type="TYPE_FP32", dims=[6]),
    ]
    if with_size:
        outputs.append(ModelOutput(name="size", data_type="TYPE_INT64", dims=parts.dims(2)))
    parameters = {
        **settings,
        "scale": repr(1 / 255),
        "channels": "RGB",
        "layout": picture.layout,
        "most_pixels": _MOST_PIXELS,
    }
    image = ModelInput(name="image", data_type="TYPE_STRING", dims=[1])
    return python_model(parts, "decode", [image], outputs, parameters)


def python_model(
    parts: Parts,
    step: str,
    inputs: Sequence[ModelInput],
    outputs: Sequence[ModelOutput],
    parameters: Mapping[str, str],
) -> ModelConfig:
    """Return the configuration of a Python model beside the network."""
    batching = ModelDynamicBatching() if parts.batch else None
    return ModelConfig(
        name=f"{parts.name}_{step}",
        backend="python",
        max_batch_size=parts.batch,
        input=inputs,
        output=outputs,
        parameters=dict(parameters),
        dynamic_batching=batching,
        # Without a kind, Triton starts such a model on each GPU, whose memory it does not use.
        instance_group=[ModelInstanceGroup(kind="KIND_CPU", count=2)],
    )


def connected(
    parts: Parts,
    decode: ModelConfig,
    last: ModelConfig,
    *,
    network_inputs: Mapping[str, str],
    network_outputs: Mapping[str, str],
    last_inputs: Mapping[str, str],
) -> ModelConfig:
    """Return the ensemble of the decoder, the network and the last model."""
    ensemble = (
        Ensemble(parts.name)
        .input("image")
        .step(decode)
        .step(parts.config, inputs=network_inputs, outputs=network_outputs)
        .step(last, inputs=last_inputs)
    )
    for output in last.output:
        ensemble = ensemble.output(output.name)
    return ensemble.to_config()


def folders(
    parts: Parts, decode: ModelConfig, last: ModelConfig, code: str, ensemble: ModelConfig
) -> tuple[NewModel, ...]:
    """Return the folders of the four models, with their files."""
    last_files: dict[str, Path | bytes] = {"model.py": _code(code)}
    if parts.labels:
        last_files["labels.txt"] = "".join(f"{label}\n" for label in parts.labels).encode()
    network = parts.derived
    return (
        NewModel(decode.name, decode.to_text(), {"model.py": _code("decode_pictures.py")}),
        NewModel(network.message.name, network.to_text(), network.files),
        NewModel(last.name, last.to_text(), last_files),
        # Triton wants the folder of a version, which Git keeps only with a file.
        NewModel(ensemble.name, ensemble.to_text(), {".keep": b""}),
    )


def _code(name: str) -> bytes:
    return pkgutil.get_data(__package__, f"code/{name}") or b""


def about_labels(labels: Sequence[str], classes: int | None) -> str:
    if labels:
        return f"{len(labels)} labels, from {labels[0]!r} to {labels[-1]!r}"
    count = "an unknown number of" if classes is None else str(classes)
    return f"{count} classes without labels; --labels FILE has one on each line"


def assumptions_of_pictures(settings: Mapping[str, str]) -> list[str]:
    """Return what is assumed about how the network was trained on pictures."""
    shapes = {
        "letterbox": "a picture keeps its proportions and is padded in the middle with grey",
        "stretch": "a picture is stretched to the input's size",
        "crop": "the middle of a picture is cut to the input's proportions",
    }
    values = "RGB from 0 to 1"
    if settings["mean"] == IMAGENET_MEAN:
        values += ", normalized with ImageNet's mean and deviation"
    return [f"{shapes[settings['fit']]}; the numbers are {values}"]
