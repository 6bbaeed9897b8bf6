"""Derives a configuration from a model file, with the reason of each decision."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.builder.backend import Backend
from triton_model_check.builder.backends import (
    DaliBackend,
    FilBackend,
    OnnxruntimeBackend,
    OpenvinoBackend,
    PytorchBackend,
    TensorflowBackend,
    TensorrtBackend,
)
from triton_model_check.builder.checking import ModelInMemory, refuse_errors
from triton_model_check.builder.derived_tensors import Derivation, derive_tensors
from triton_model_check.builder.derived_warmup import warmup_requests
from triton_model_check.builder.typed_message import TypedMessage
from triton_model_check.facts.releases import newest_known_release
from triton_model_check.model.backends import infer_backend
from triton_model_check.model.loaded_files import file_to_load
from triton_model_check.model_config.text import format_model_config
from triton_model_check.model_files import describe
from triton_model_check.model_files.description import format_of
from triton_model_check.model_files.model_file import TREE_MODEL_FILES, ModelFile, ModelFormat
from triton_model_check.model_files.trees import is_other_content
from triton_model_check.model_files.unnamed_format import format_by_content, models_in
from triton_model_check.onnx_runtimes.asking import Asking
from triton_model_check.untrusted.links import expect_own_file, own_folders

__all__ = ["DerivedConfig", "derive"]

_BACKENDS: dict[str, Backend] = {
    "onnx": OnnxruntimeBackend(),
    "ort": OnnxruntimeBackend(),
    "tensorrt_plan": TensorrtBackend(),
    "torchscript": PytorchBackend(),
    "openvino": OpenvinoBackend(),
    "savedmodel": TensorflowBackend(),
    "dali": DaliBackend(),
}
_WIDTH = 100
_FIELD = re.compile(r"[a-z_]+")
_ENDINGS = ".onnx, .pt, .plan, .xml, .json, .ubj, .txt, .tl, .model, .dali and .savedmodel"

PYTHON_SYNTAX: Mapping[str, str] = MappingProxyType(
    {
        "input": 'input=[ModelInput(name="{input}", data_type="TYPE_FP32", dims=[{dims}])]',
        "output": 'output=[ModelOutput(name="{output}", data_type="TYPE_FP32", dims=[1000])]',
        "output_class": (
            "backend=FilBackend(output_class=True) for a classifier (False for a regressor)"
        ),
        "max_batch_size": "max_batch_size",
        "dynamic_batching": "dynamic_batching",
        "with_warmup": "with_warmup",
    }
)
"""How a user of Python writes what a file does not say."""


@dataclass(frozen=True, slots=True)
class DerivedConfig:
    """The message of a configuration that was derived from ``file``.

    ``comments`` are the reasons of decisions, by the field of the configuration.
    """

    message: Any
    file: ModelFile
    comments: Mapping[str, str]

    def to_text(self) -> str:
        """Return the content of ``config.pbtxt``, with the comments."""
        title = f"The configuration of {self.file.path.name}, derived by constructs-triton."
        text = format_model_config(self.message)
        if "max_batch_size" in self.comments and not self.message.max_batch_size:
            text = text.replace("\ninput {", "\nmax_batch_size: 0\ninput {", 1)
        return _with_comments(text, title, self.comments)

    @property
    def files(self) -> dict[str, Path]:
        """The files of the model by their path in the folder of a version.

        Raises:
            InvalidValueError: the model has data outside its folder, also when links are followed.
        """
        # A model file may itself be a link, to a folder that has its data too.
        beside = Path(os.path.realpath(self.file.path)).parent
        folders = (*own_folders(self.file.path.parent), beside)
        loaded = file_to_load(infer_backend(ModelInMemory(self.message)), self.message)
        place = loaded.place if loaded is not None else self.file.path.name
        files = {place: self.file.path}
        for location in self.file.data_files:
            target = (
                str(Path(place).with_suffix(".bin")) if self.file.format == "openvino" else location
            )
            data = self.file.path.parent / location
            files[self._inside(target)] = data
            expect_own_file(data, folders)
        return files

    def _inside(self, location: str) -> str:
        if Path(location).is_absolute() or ".." in Path(location).parts:
            raise InvalidValueError(
                f'{self.file.path}: its data must be in the folder of the model, got "{location}"; '
                "save the model again with its external data beside it"
            )
        return location

    def raise_faults(self) -> None:
        """Raise why Triton does not load the file, if anything is known.

        Raises:
            InvalidValueError: Triton does not load the file.
        """
        lines = [
            (
                f"{self.file.path.parent / (fault.file or self.file.path.name)}: "
                f"{fault.message}; {fault.hint}"
            )
            for fault in self.file.faults
        ]
        if lines:
            raise InvalidValueError("\n".join(lines))


def derive(
    draft: Callable[..., TypedMessage],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    max_batch_size: int | None = None,
    with_warmup: bool = False,
    warmup_dims: Mapping[str, Sequence[int]] | None = None,
    fields: Mapping[str, Any] | None = None,
    syntax: Mapping[str, str] = PYTHON_SYNTAX,
    onnx_runtime: Asking = "never",
) -> DerivedConfig:
    """Derive the configuration of a model file; the arguments are those of
    ``ModelConfig.from_model_file``.

    ``draft`` is ``ModelConfig.draft``, which turns the fields that are known at first into a
    message. ``warmup_dims`` are dims of the warmup request, for inputs with dims of variable size.
    ``syntax`` is how the user writes what is missing. ``onnx_runtime`` is whether ONNX Runtime is
    asked about an ONNX model. Faults of the file are not raised; the result
    has them.

    Raises:
        InvalidValueError: there is no such file, its format is unknown, a field is missing, or
            Triton would reject the configuration.
    """
    file = _described(Path(path), onnx_runtime)
    given = {"name": checked_name(name or _default_name(file.path, Path(path))), **(fields or {})}
    derivation = Derivation(
        draft(**_first_fields(file, given)).to_message(), file, max_batch_size, syntax
    )
    if not file.faults:
        derive_tensors(derivation)
    message, comments = derivation.message, derivation.comments
    if not message.instance_group:
        default = _DEFAULT_INSTANCES.get(file.format, "one instance on each GPU, or one on the CPU")
        comments["instance_group"] = f"instance_group is left out, so Triton runs {default}."
    if with_warmup and not file.faults:
        message.model_warmup.extend(warmup_requests(message, file.path, syntax, warmup_dims or {}))
        comments["model_warmup"] = _ZEROS
    if not file.faults:  # The configuration of a file with faults is not complete.
        refuse_errors(message)
    return DerivedConfig(message, file, MappingProxyType(comments))


_DEFAULT_INSTANCES = {
    "onnx": "one instance on each GPU, or two on the CPU",
    "ort": "one instance on each GPU, or two on the CPU",
    "savedmodel": "one instance on each GPU, or two on the CPU",
    "tensorrt_plan": "one instance on each GPU",
    "openvino": "one instance on the CPU",
}
_ZEROS = (
    "Triton runs these requests before the model is ready. They contain zeros, which every data "
    "type allows. Random bytes may be NaN, or an index that is out of range."
)


def _described(path: Path, onnx_runtime: Asking) -> ModelFile:
    """Return the description of a model file, whose format must be known."""
    if not os.path.lexists(path):
        raise InvalidValueError(f"{path}: does not exist; pass the path of a model file")
    image = None if onnx_runtime == "never" else newest_known_release().version
    file = describe(path, image, model_format=_format_of(path), onnx_runtime=onnx_runtime)
    if file.format == "unknown" and path.is_dir():
        found = models_in(path)
        hint = f"pass a model in it, such as {path / found[0]}" if found else "pass a model file"
        raise InvalidValueError(f"{path}: is a folder, and not a model itself; {hint}")
    if file.format == "unknown":
        raise InvalidValueError(
            f'{path}: the format of the model is unknown, got "{path.suffix}"; known endings are '
            f"{_ENDINGS}; for code that runs the model, "
            "use `constructs-triton model new --backend python NAME`"
        )
    if file.format == "tree" and not file.faults and is_other_content(file.path):
        raise InvalidValueError(
            f"{path}: is not a model of XGBoost or LightGBM, which this ending stands for; "
            "pass the file that save_model of the booster wrote"
        )
    return file


def _format_of(path: Path) -> ModelFormat | None:
    """The format by the content, or ``None`` if the name of the file says it."""
    if (path / "model.onnx").is_file():
        return "onnx"
    return format_by_content(path) if format_of(path) == "unknown" else None


def _default_name(file: Path, given: Path) -> str:
    return given.resolve().name if given.is_dir() and file != given else given.stem


def checked_name(name: str) -> str:
    """Return the name of a model.

    Raises:
        InvalidValueError: no folder can have this name.
    """
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise InvalidValueError(
            f"name: must be usable as the name of a folder, got {name!r}; use another name"
        )
    return name


def _first_fields(file: ModelFile, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the user has given,
    and those that follow from the format of the file.
    """
    values = dict(given)
    if not values.get("backend") and not values.get("platform"):
        values["backend"] = _BACKENDS[file.format] if file.format != "tree" else FilBackend()
    if file.format == "tree":
        values["parameters"] = {"model_type": _tree_type(file), **values.get("parameters", {})}
    if file.format == "ort":
        values.setdefault("default_model_filename", "model.ort")
    return values


def _tree_type(file: ModelFile) -> str:
    types = {Path(name).suffix: model_type for model_type, name in TREE_MODEL_FILES.items()}
    return file.model_type or types[file.path.suffix]


def _with_comments(text: str, title: str, comments: Mapping[str, str]) -> str:
    """Return ``text`` with ``title`` at its beginning and each comment before the first line of its
    field.

    Comments on fields that the text does not contain are at its end.
    """
    waiting = dict(comments)
    lines = list(_comment_lines(title))
    for line in text.splitlines():
        match = _FIELD.match(line)
        if match and match[0] in waiting:
            lines += _comment_lines(waiting.pop(match[0]))
        lines.append(line)
    lines += [line for comment in waiting.values() for line in _comment_lines(comment)]
    return "\n".join(lines) + "\n"


def _comment_lines(comment: str) -> Iterator[str]:
    for line in textwrap.wrap(comment, _WIDTH - 2, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"
