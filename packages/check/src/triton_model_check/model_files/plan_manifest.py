"""The manifest that ``constructs-triton compile`` writes beside a plan: where and from what it was built.

The header of a plan says only the version of TensorRT. The manifest also has the GPU, so a plan can be
compared with the instance type of an endpoint before it is deployed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import read_json

__all__ = ["MANIFEST_FILE", "PlanManifest", "gpu_folder", "manifest_of", "read_manifest"]

MANIFEST_FILE = "plan.json"
_FORMAT = 1
_ONLY_PLAN = "model.plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanManifest:
    """What is known about one plan.

    Args:
        key: SHA-256 of everything that determines the plan.
        gpu_model: Model of the GPU, such as ``"A10G"``.
        compute_capability: Compute capability of the GPU, such as ``"8.6"``.
        built_on: Instance type of the job.
        image: Image that built the plan.
        tensorrt: Version of TensorRT in the header of the plan; empty if the header does not say it.
        driver: Version of the GPU's driver in the job.
        arguments: Arguments of ``trtexec``.
        model_sha256: SHA-256 of the ONNX file and of its external data.
        plan_bytes: Size of the plan.
        plan_sha256: SHA-256 of the plan.
        build_seconds: How long the script ran.
        job: Name of the job.
        log_group: Its log group in CloudWatch Logs.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file."""
        return {"format": _FORMAT, **asdict(self), "arguments": list(self.arguments)}


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
        value = content.get(field.name)
        wanted = {"int": int, "str": str}.get(str(field.type), list)
        if type(value) is not wanted:
            raise _not_a_manifest(path, f'"{field.name}" is missing or has another type')
        values[field.name] = tuple(map(str, value)) if isinstance(value, list) else value
    return PlanManifest(**values)


def _not_a_manifest(path: Path, reason: str) -> InvalidValueError:
    return InvalidValueError(
        f"{path}: is not a manifest of `constructs-triton compile`: {reason}; compile the model again, or "
        "delete the file"
    )
