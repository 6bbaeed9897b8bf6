"""The folder of compiled models: one model repository for each type of GPU.

::

    compiled/A10G/bert/config.pbtxt
    compiled/A10G/bert/plan.json
    compiled/A10G/bert/1/model.plan
    compiled/logs/A10G/bert.log
"""

from __future__ import annotations

from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType

__all__ = ["gpu_folder"]


def gpu_folder(gpu_model: str) -> str:
    """Return the name of a GPU as the name of a folder, such as ``RTX-PRO-4500``."""
    return gpu_model.replace(" ", "-")


def compiled_repository(path: Path, instance_type: InstanceType) -> Path:
    """Return the repository for the GPU of an instance type.

    Raises:
        InvalidValueError: there is none, or the GPU of the type is not known.
    """
    if instance_type.gpu_model is None:
        raise InvalidValueError(
            f'instance_type: must be a known type with an NVIDIA GPU, got "{instance_type}"; use '
            "from_directory with one folder of the compiled models"
        )
    repository = path / gpu_folder(instance_type.gpu_model)
    if not repository.is_dir():
        raise InvalidValueError(
            f"{path}: has no models for {instance_type} ({instance_type.gpu_model}); run `constructs-triton "
            f"compile MODEL --instance-type {instance_type} --output {path}`"
        )
    return repository
