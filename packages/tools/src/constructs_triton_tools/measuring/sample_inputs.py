"""Sample inputs for a model: zeros or random data in the data types and
shapes of its configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from constructs_triton_client.wire.dtypes import dtype_of
from constructs_triton_core.datatypes import Datatype, by_data_type
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.builder.derived_warmup import concrete_dims
from triton_model_check.checks.loaded_config import complete
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.model_repository import ModelRepository

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from triton_model_check.model.folder import ModelFolder

# The largest random whole number. Larger ones may be out of range where a model uses them as
# indices.
_LARGEST_INTEGER = 9
_WORDS = (b"blue", b"green", b"red", b"white")

Sample = tuple["NDArray[Any]", str]
"""An array and its datatype on the wire."""


def sample_inputs(
    repository: Path,
    model: str | None,
    likely: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    *,
    is_random: bool,
    seed: int | None = None,
) -> dict[str, Sample]:
    """Return a value for each required input of a model in ``repository``, with a batch of one.

    Random values are the same for the same ``seed``, if there is one.

    ``model`` is by default the first of ``likely`` that the repository contains, or its only model.
    """
    if not repository.is_dir():
        raise InvalidValueError(
            f"--repository: gives --random and --zeros the shapes of the tensors, but {repository} "
            "is not a folder; set it to your model repository, "
            "or send your own tensors with --input"
        )
    folder = _folder(ModelRepository.from_directory(repository), model, likely)
    return sample_model(folder, shapes, is_random=is_random, seed=seed)


def sample_model(
    folder: ModelFolder,
    shapes: Mapping[str, Sequence[int]],
    *,
    is_random: bool,
    seed: int | None = None,
) -> dict[str, Sample]:
    """Return a value for each required input of a model, as ``sample_inputs`` does."""
    config = complete(folder).config
    if not config.input:
        raise InvalidValueError(
            f"{folder.directory}: the inputs of the model are not known, because they are not in "
            "config.pbtxt; write each with --input"
        )
    dims = concrete_dims(config, shapes)
    batch = (1,) if config.max_batch_size > 0 else ()
    generator = np.random.default_rng(seed) if is_random else None
    return {
        tensor.name: _sample(tensor, (*batch, *dims[tensor.name]), generator)
        for tensor in config.input
        if not tensor.optional
    }


def unknown_tensor(
    repository: Path, model: str, inputs: Iterable[str], outputs: Iterable[str]
) -> str | None:
    """Describe the first name that is none of the model's tensors;
    ``None`` if the names are not known.
    """
    try:
        config = complete(ModelRepository.from_directory(repository).model(model)).config
    except ConstructsTritonError:  # the model may be in another repository
        return None
    for side, given, tensors in (
        ("input", inputs, config.input),
        ("output", outputs, config.output),
    ):
        known = [tensor.name for tensor in tensors]
        wrong = next((name for name in given if name not in known), None)
        if known and wrong is not None:
            hint = did_you_mean(wrong, known, "use one of them")
            return (
                f'--{side}: the model "{model}" has no {side} "{wrong}"; its {side}s in '
                f"{repository / model} are {quoted(known)}; {hint}"
            )
    return None


def _folder(repository: ModelRepository, model: str | None, likely: Sequence[str]) -> ModelFolder:
    """Return the folder of the model that gets the requests.

    That is ``model``, the first of the ``likely`` models that exists, or the only model that is
    not just a step of an ensemble.

    Raises:
        InvalidValueError: the repository has none, or several.
    """
    if model:
        return repository.model(model)

    if not repository.models:
        below = {str(config.parents[1]) for config in repository.path.glob("*/*/config.pbtxt")}
        example = f", such as {quoted(sorted(below))}" if below else ""
        raise InvalidValueError(
            f"--repository: {repository.path} contains no model; "
            f"set it to a folder of models{example}"
        )

    for name in likely:
        if name in repository.models:
            return repository.model(name)

    top_level = repository.top_level_models()
    if len(top_level) != 1:
        known = quoted(repository.models)
        raise InvalidValueError(
            f"--model: is required, because the repository {repository.path} contains {known}; set "
            "--model, or --repository to another folder"
        )
    return repository.model(top_level[0])


def _sample(tensor: Any, shape: tuple[int, ...], generator: np.random.Generator | None) -> Sample:
    datatype = by_data_type(data_type_name(tensor.data_type))
    if datatype is None:
        raise InvalidValueError(
            f'input "{tensor.name}": its data type is not known; set data_type in config.pbtxt'
        )
    array = _zeros(datatype, shape) if generator is None else _random(datatype, shape, generator)
    return array, datatype.datatype


def _zeros(datatype: Datatype, shape: tuple[int, ...]) -> NDArray[Any]:
    if datatype.datatype == "BYTES":
        return np.full(shape, b"", dtype=object)
    return np.zeros(shape, dtype_of(datatype))


def _random(
    datatype: Datatype, shape: tuple[int, ...], generator: np.random.Generator
) -> NDArray[Any]:
    dtype = dtype_of(datatype)
    if datatype.datatype == "BYTES":
        words = np.array(_WORDS, dtype=object)
        chosen: NDArray[Any] = words[generator.integers(0, len(_WORDS), shape)]
        return chosen
    if datatype.datatype == "BOOL":
        return generator.integers(0, 2, shape).astype(dtype)
    if datatype.datatype == "UINT8":
        return generator.integers(0, 256, shape).astype(dtype)
    if datatype.datatype == "BF16" and dtype.kind == "u":
        # Without ml_dtypes, BF16 is its bit patterns: the upper half of FP32.
        return (generator.random(shape, dtype=np.float32).view(np.uint32) >> 16).astype(dtype)
    if dtype.kind in "iu":
        return generator.integers(0, _LARGEST_INTEGER + 1, shape).astype(dtype)
    return generator.random(shape).astype(dtype)


def python_call(
    endpoint: str,
    options: Mapping[str, str | None],
    inputs: Mapping[str, Sample],
    invoke_options: Mapping[str, str] | None = None,
) -> str:
    """Return Python code that sends zeros of the same shapes.

    ``options`` are those of the client, and ``invoke_options`` the parameters of InvokeEndpoint.
    """
    values = "".join(f"    {name!r}: {_literal(*sample)},\n" for name, sample in inputs.items())
    given = _keywords(options)
    client = f"TritonClient.for_endpoint({endpoint!r}{given})"
    names = "TritonClient"
    if endpoint.startswith(("http://", "https://")):
        client = f"TritonClient(HttpTransport({endpoint!r}))"
        names = "HttpTransport, TritonClient"
    return (
        "import numpy as np\n"
        f"from constructs_triton_client import {names}\n\n"
        f"result = {client}.infer({{\n{values}}}{_keywords(invoke_options or {})})\n"
    )


def _keywords(options: Mapping[str, str | None]) -> str:
    return "".join(f", {name}={value!r}" for name, value in options.items() if value)


def _literal(array: NDArray[Any], datatype: str) -> str:
    if datatype == "BYTES":
        return f'np.full({array.shape}, b"text", dtype=object)'
    return f'np.zeros({array.shape}, "{array.dtype.name}")'
