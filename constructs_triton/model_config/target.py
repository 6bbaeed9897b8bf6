"""What a model repository is checked for: the machine, the image and the mode of an endpoint.

A plain value, so that a repository can be judged on a laptop without any construct. What is ``None`` is not
known, and no check judges by it: ``Target()`` stands for "nothing is known", where a repository is judged as
a single-model Triton server on a machine without GPUs judges it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from constructs_triton.facts.instance_types import InstanceType

__all__ = ["Mode", "Target"]

Mode = Literal["single", "multi-model"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a model repository is to run.

    ``mode``
        ``"single"``: one archive, unpacked into ``/opt/ml/model``. ``"multi-model"``: an archive a model,
        loaded by name on its first request.
    ``gpu_count``
        NVIDIA GPUs of one instance; ``0`` is a CPU instance, ``None`` is not known.
    ``gpu_memory_mib``
        Memory of **each** GPU, in MiB.
    ``memory_gib``
        Main memory of one instance, in GiB; up to half of it becomes ``/dev/shm``.
    ``storage_gb``
        Disk that models are unpacked onto, in GB.
    ``image_version``
        Triton image version such as ``"26.05"``.
    ``default_model``
        Value of ``SAGEMAKER_TRITON_DEFAULT_MODEL_NAME``: the model that ``/invocations`` reaches.
    ``local_files``
        ``False`` where weights and version folders are stored elsewhere, so that only the model
        configurations can be judged.
    """

    mode: Mode = "single"
    gpu_count: int | None = None
    gpu_memory_mib: int | None = None
    memory_gib: float | None = None
    storage_gb: int | None = None
    image_version: str | None = None
    default_model: str | None = None
    local_files: bool = True

    @classmethod
    def of(
        cls,
        *,
        instance_type: InstanceType | str,
        image_version: str | None = None,
        mode: Mode = "single",
        default_model: str | None = None,
        volume_size_gb: int | None = None,
        local_files: bool = True,
    ) -> Target:
        """The target that an instance type makes, with what is published of its hardware.

        ``volume_size_gb`` is the EBS volume of a type without local NVMe. Raises ``InvalidValueError`` for a
        text that is no instance type.
        """
        instance = InstanceType.of(instance_type) if isinstance(instance_type, str) else instance_type
        return cls(
            mode=mode,
            gpu_count=instance.gpus,
            gpu_memory_mib=instance.gpu_memory_mib,
            memory_gib=instance.memory_gib,
            storage_gb=instance.local_storage_gb or volume_size_gb,
            image_version=image_version,
            default_model=default_model,
            local_files=local_files,
        )
