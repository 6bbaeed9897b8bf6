"""What a model repository is checked for: the machine, the image and the mode of an endpoint.

A plain value, so that a repository can be judged on a laptop without any construct. What is ``None`` is not
known, and no check judges by it: ``Target()`` stands for "nothing is known", where a repository is judged as
a single-model Triton server on a machine without GPUs judges it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
