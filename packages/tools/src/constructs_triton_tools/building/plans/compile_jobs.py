"""Which SageMaker jobs can build a TensorRT plan, and which options ``trtexec`` has by version.

The lists and their sources are in ``compile_jobs.json``.
"""

from __future__ import annotations

from typing import Literal

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import facts_of
from constructs_triton_core.facts.instance_types import InstanceType, instance_type_names

__all__ = [
    "JobKind",
    "data_type_in_plan",
    "entrypoint",
    "has_strong_types",
    "is_removed_option",
    "job_kind",
    "not_settled",
    "regions_without_processing",
    "smallest_with_gpu",
]

JobKind = Literal["processing", "training"]

_load = facts_of(__package__)


def job_kind(instance: InstanceType) -> JobKind:
    """Return the job that has the instance type: processing,
    or training for those that it does not have.
    """
    return (
        "training" if instance.name in _load("compile_jobs")["not_in_processing"] else "processing"
    )


def regions_without_processing(instance: InstanceType) -> tuple[str, ...]:
    """Return the Regions in which endpoints can have the family of a type and
    processing jobs cannot.
    """
    return tuple(_load("compile_jobs")["regions_without_processing"].get(instance.family, ()))


def smallest_with_gpu(gpu_model: str) -> InstanceType:
    """Return the smallest type with a GPU, preferably one that processing jobs have.

    A plan depends on the model of the GPU, and not on the size of the instance.

    Raises:
        InvalidValueError: no known type has the GPU.
    """
    types = [InstanceType.of(name) for name in instance_type_names()]
    fitting = [instance_type for instance_type in types if instance_type.gpu_model == gpu_model]
    if not fitting:
        raise InvalidValueError(
            f'gpu_model: no instance type has it, got "{gpu_model}"; use another one'
        )
    return min(
        fitting,
        key=lambda instance_type: (
            job_kind(instance_type) != "processing",
            instance_type.vcpus or 0,
            instance_type.name,
        ),
    )


def entrypoint() -> str:
    """Return the program that starts NVIDIA's containers."""
    return str(_load("compile_jobs")["entrypoint"])


def is_removed_option(option: str, tensorrt_major: int) -> bool:
    """Return whether ``trtexec`` of this version ends with an error because
    of an option it once had.
    """
    removed = _load("compile_jobs")["removed_options"]
    return any(option in names for major, names in removed.items() if tensorrt_major >= int(major))


def has_strong_types(tensorrt_major: int) -> bool:
    """Return whether ``trtexec`` of this version has the option ``--stronglyTyped``."""
    return tensorrt_major >= int(_load("compile_jobs")["strongly_typed_since"])


def data_type_in_plan(data_type: str, tensorrt: str) -> str:
    """Return the type that an input or output of an ONNX file has in a plan;
    ``""`` if it is not settled.
    """
    return str(
        _load("compile_jobs")["data_types"].get(tensorrt.partition(".")[0], {}).get(data_type, "")
    )


def not_settled() -> tuple[str, ...]:
    """Return what nothing published says about these jobs."""
    return tuple(_load("compile_jobs")["not_settled"])
