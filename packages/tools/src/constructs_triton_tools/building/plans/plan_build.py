"""One plan to build: model, arguments of ``trtexec``, image and GPU; and the key of the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.tokens import is_token
from constructs_triton_tools.building.plans.compile_jobs import smallest_with_gpu
from constructs_triton_tools.building.plans.onnx_model import OnnxModelFile
from constructs_triton_tools.building.plans.shapes import InputRange
from triton_model_check.model_files.plan_manifest import gpu_folder

_KEY_FORMAT = 1


@dataclass(frozen=True, slots=True)
class BuildImage:
    """The image that builds the plan, and in which the endpoint loads it.

    Args:
        uri: URI of the image.
        identity: What stays the same in every Region: the release of AWS's image, or the URI of
            your own.
        tensorrt: Beginning of the version of its TensorRT; ``None`` if it is not known.
    """

    uri: str
    identity: str
    tensorrt: str | None


@dataclass(frozen=True)
class PlanBuild:
    """One plan.

    Args:
        model: The ONNX model.
        arguments: Arguments of ``trtexec``, without the paths of files.
        image: The image.
        gpu: The instance type that runs the job; it has the GPU of the endpoint.
        instance_types: The instance types that were asked for, all with this GPU.
        ranges: The shapes of the inputs that have a variable size, which are among the arguments.
    """

    model: OnnxModelFile
    arguments: tuple[str, ...]
    image: BuildImage
    gpu: InstanceType
    instance_types: tuple[str, ...] = field(default=())
    ranges: tuple[InputRange, ...] = ()

    @cached_property
    def key(self) -> str:
        """SHA-256 of everything that determines the plan. Regions, roles and buckets do not."""
        content = {
            "format": _KEY_FORMAT,
            "files": self.model.digests,
            "arguments": list(self.arguments),
            "image": self.image.identity,
            "gpu_model": self.gpu.gpu_model,
            "compute_capability": self.gpu.compute_capability,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def gpu_folder(self) -> str:
        """The name of the GPU as the name of a folder."""
        return gpu_folder(self.gpu.gpu_model or "")


def group_by_gpu(names: Iterable[str], build_on: str | None) -> dict[InstanceType, tuple[str, ...]]:
    """Return the instance types that build plans, and the types of endpoints that each plan serves.

    A plan serves all types with the same type of GPU, so the smallest of them builds it. The same
    compute capability is not enough: TensorRT warns about the plan of an L4 on an L40S.

    ``build_on`` is the instance type of the job, in place of the smallest.
    """
    groups: dict[InstanceType, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(_builder(_with_gpu(name), build_on), []).append(name)
    return {builder: tuple(types) for builder, types in groups.items()}


def _with_gpu(name: str) -> InstanceType:
    instance = InstanceType.of(name)
    if is_token(name) or not instance.is_known:
        hint = instance.nearest_known or "use a type of `constructs-triton facts instance`"
        raise InvalidValueError(
            f'--instance-type: the GPU of the type is not known, got "{name}"; {hint}'
        )
    if not instance.gpus or instance.gpu_model is None:
        raise InvalidValueError(
            f'--instance-type: TensorRT needs an NVIDIA GPU, got "{name}", which has none; use for '
            "example ml.g5.xlarge, or ONNX Runtime on the CPU"
        )
    if instance.architecture != "x86_64":
        raise InvalidValueError(
            f'--instance-type: AWS builds its Triton images for x86_64 only, got "{name}" '
            f"({instance.architecture}); use an x86_64 type"
        )
    return instance


def _builder(instance: InstanceType, build_on: str | None) -> InstanceType:
    assert instance.gpu_model is not None
    if build_on is None:
        return smallest_with_gpu(instance.gpu_model)
    chosen = _with_gpu(build_on)
    if chosen.gpu_model != instance.gpu_model:
        raise InvalidValueError(
            f"--build-on: must have the GPU of {instance} ({instance.gpu_model}), got {chosen} "
            f"({chosen.gpu_model}); compile for one GPU at a time, or leave the option out"
        )
    return chosen
