"""The manifest that ``constructs-triton compile`` writes beside a plan: where and from what it was
built.

The header of a plan says only the version of TensorRT. The manifest also has the GPU and the
tensors, so a plan can be compared with the instance type of an endpoint and with ``config.pbtxt``
before it is deployed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from constructs_triton_core.datatypes import by_data_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.cache_contract import sha256_of
from constructs_triton_core.untrusted.regular_files import read_json
from triton_model_check.model_files.model_file import ModelTensor

__all__ = ["MANIFEST_FILE", "PlanManifest", "gpu_folder", "manifest_of", "read_manifest"]

MANIFEST_FILE = "plan.json"
_FORMAT = 1
_ONLY_PLAN = "model.plan"
_SIDES = ("inputs", "outputs")
_SHAPES = ("min", "opt", "max")
_LARGEST_SIZE = 2**31 - 1
# Reading the whole plan takes a second or two for each GiB.
_LARGEST_COMPARED_BYTES = 8 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanManifest:
    """What is known about one plan.

    Args:
        key: SHA-256 of everything that determines the plan.
        gpu_model: Model of the GPU, such as ``"A10G"``.
        compute_capability: Compute capability of the GPU, such as ``"8.6"``.
        built_on: Instance type of the job.
        image: Image that built the plan.
        tensorrt: Version of TensorRT in the header of the plan; empty if the header does not say
            it.
        driver: Version of the GPU's driver in the job.
        arguments: Arguments of ``trtexec``.
        model_sha256: SHA-256 of the ONNX file and of its external data.
        plan_bytes: Size of the plan.
        plan_sha256: SHA-256 of the plan.
        build_seconds: How long the script ran.
        job: Name of the job.
        log_group: Its log group in CloudWatch Logs.
        inputs: The inputs with their profiles; empty in manifests of earlier versions. A data type
            or a shape that TensorRT may choose otherwise is not known.
        outputs: The outputs.
    """

    key: str
    gpu_model: str
    compute_capability: str
    built_on: str
    image: str
    tensorrt: str
    driver: str
    arguments: tuple[str, ...]
    model_sha256: str
    plan_bytes: int
    plan_sha256: str
    build_seconds: int
    job: str
    log_group: str
    inputs: tuple[ModelTensor, ...] = ()
    outputs: tuple[ModelTensor, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file."""
        return {
            "format": _FORMAT,
            **asdict(self),
            "arguments": list(self.arguments),
            "inputs": [_entry(tensor) for tensor in self.inputs],
            "outputs": [_entry(tensor) for tensor in self.outputs],
        }


def gpu_folder(gpu_model: str) -> str:
    """Return the name of a GPU as the name of a folder, such as ``RTX-PRO-4500``."""
    return gpu_model.replace(" ", "-")


def manifest_of(plan: str) -> str:
    """Return the name of a plan's manifest in the folder of the model, such as ``T4.plan.json``."""
    return MANIFEST_FILE if plan == _ONLY_PLAN else f"{plan}.json"


def read_manifest(path: Path) -> PlanManifest | None:
    """Read a manifest; ``None`` if there is no such file.

    Raises:
        InvalidValueError: the file is not a manifest of this version.
    """
    if not os.path.lexists(path):
        return None
    try:
        content = read_json(path)
    except (OSError, ValueError) as error:
        raise _not_a_manifest(path, f"it cannot be read ({error})") from None
    if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
        raise _not_a_manifest(path, "has no format that this version knows")
    values: dict[str, Any] = {}
    for field in fields(PlanManifest):
        value: Any = content.get(field.name, [] if field.name in _SIDES else None)
        try:
            if type(value) is not {"int": int, "str": str}.get(str(field.type), list):
                raise ValueError
            read = _tensor if field.name in _SIDES else str
            values[field.name] = tuple(map(read, value)) if type(value) is list else value
        except (AttributeError, KeyError, TypeError, ValueError):
            raise _not_a_manifest(path, f'"{field.name}" is missing or has another form') from None
    return PlanManifest(**values)


def manifest_of_file(plan: Path, *, is_complete: bool = True) -> PlanManifest | None:
    """Read the manifest in the folder of the model; ``None`` if it is broken, or not that of this
    plan.

    Size and SHA-256 are compared. Without ``is_complete`` only the first bytes of the plan are
    present.
    """
    with suppress(InvalidValueError, OSError):
        manifest = read_manifest(plan.parent.parent / manifest_of(plan.name))
        size = plan.stat().st_size
        if manifest is None or manifest.plan_bytes != size:
            return None
        is_read = is_complete and size <= _LARGEST_COMPARED_BYTES
        if is_read and manifest.plan_sha256 != sha256_of(plan):
            return None
        return manifest
    return None


def _entry(tensor: ModelTensor) -> dict[str, Any]:
    shapes = dict(zip(_SHAPES, tensor.profile, strict=False))
    return {"name": tensor.name, "data_type": tensor.data_type, "shape": tensor.shape, **shapes}


def _tensor(entry: Any) -> ModelTensor:
    """Read a tensor; any error is one of its form."""
    name = entry["name"]
    data_type = entry["data_type"]
    shape = _sizes(entry["shape"])
    profile = [_sizes(entry.get(limit)) for limit in _SHAPES]
    known = [sizes for sizes in profile if sizes is not None]

    is_type = data_type == "" or by_data_type(data_type) is not None
    if type(name) is not str or not is_type or not _is_profile(known, shape):
        raise ValueError
    return ModelTensor(name, data_type, shape, profile=tuple(known))


def _is_profile(known: list[tuple[int, ...]], shape: tuple[int, ...] | None) -> bool:
    """Whether a profile has all of its shapes or none, with one rank and without open sizes."""
    if len(known) not in (0, len(_SHAPES)):
        return False
    ranks = {len(sizes) for sizes in known}
    if shape is not None:
        ranks.add(len(shape))
    return len(ranks) < 2 and not any(-1 in sizes for sizes in known)


def _sizes(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    for size in value:
        if type(size) is not int or not -1 <= size <= _LARGEST_SIZE:
            raise ValueError
    return tuple(value)


def _not_a_manifest(path: Path, reason: str) -> InvalidValueError:
    return InvalidValueError(
        f"{path}: is not a manifest of `constructs-triton compile`: {reason}; compile the model "
        "again, or delete the file"
    )
