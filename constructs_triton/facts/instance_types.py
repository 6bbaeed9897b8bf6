"""SageMaker's instance types for hosting: GPUs, memory, local disk, architecture.

The table is ``instance_types.json``, beside its sources. ``InstanceType.of`` is open: a type that AWS adds
tomorrow passes, with nothing known of its hardware.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.published import load
from constructs_triton.spelling import did_you_mean
from constructs_triton.tokens import is_token

__all__ = ["InstanceType", "instance_type_names"]

_NAME = re.compile(r"ml\.(?P<family>[a-z0-9-]+)\.(?P<size>[a-z0-9-]+)")
_NVIDIA_FAMILY = re.compile(r"[gp]\d")


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One instance type; what is ``None`` is not known, and no check judges by it.

    ``gpus``
        NVIDIA GPUs; ``0`` for CPU types and for other accelerators, which no Triton image of AWS uses.
    ``gpu_memory_mib``
        Memory of **each** GPU, in MiB.
    ``compute_capability``
        NVIDIA's number for the GPU's architecture: ``"8.6"``.
    ``memory_gib``
        Main memory, in GiB.
    ``local_storage_gb``
        Local NVMe, in GB; ``0`` where there is none.
    ``architecture``
        ``"x86_64"`` or ``"arm64"``.
    ``multi_model_gpu_documented``
        Whether AWS lists the type for multi-model endpoints on GPUs.
    ``is_known``
        Whether the type is in the table.
    """

    name: str
    is_known: bool
    gpus: int | None = None
    gpu_model: str | None = None
    gpu_memory_mib: int | None = None
    compute_capability: str | None = None
    vcpus: int | None = None
    memory_gib: float | None = None
    local_storage_gb: int | None = None
    architecture: str | None = None
    multi_model_gpu_documented: bool = False

    @classmethod
    def of(cls, name: str) -> InstanceType:
        """The type of that name, for example ``InstanceType.of("ml.g5.xlarge")``.

        An ``ml.`` name that is not in the table, or a CDK token, passes with ``is_known=False``. Raises
        ``InvalidValueError`` for any other text.
        """
        if is_token(name):
            return cls(name=name, is_known=False)
        if _NAME.fullmatch(name) is None:
            raise _malformed(name)
        return _look_up(name)

    @property
    def family(self) -> str:
        """The middle of the name: ``"g5"``; empty for a CDK token."""
        match = _NAME.fullmatch(self.name)
        return match["family"] if match else ""

    @property
    def has_gpu(self) -> bool:
        """Whether the type has NVIDIA GPUs, which decides between the GPU and the CPU image.

        Of a type that is not in the table, the family's letter decides: AWS names its NVIDIA families ``g``
        and ``p``. A CDK token counts as a type without.
        """
        return self.gpus > 0 if self.gpus is not None else bool(_NVIDIA_FAMILY.match(self.family))

    @property
    def supports_volume_size(self) -> bool | None:
        """Whether ``VolumeSizeInGB`` may be set: not on types with local NVMe; ``None`` where not known."""
        return None if self.local_storage_gb is None else self.local_storage_gb == 0

    @property
    def nearest_known(self) -> str:
        """``'did you mean "ml.g5.xlarge"?'`` for a type that is not in the table and resembles one."""
        return "" if self.is_known or is_token(self.name) else did_you_mean(self.name, instance_type_names())

    def __str__(self) -> str:
        return self.name


def instance_type_names() -> tuple[str, ...]:
    """The names of all types in the table."""
    return tuple(load("instance_types")["types"])


@cache
def _look_up(name: str) -> InstanceType:
    facts = load("instance_types")
    row: dict[str, Any] | None = facts["types"].get(name)
    if row is None:
        return InstanceType(name=name, is_known=False)
    values = {key: value for key, value in row.items() if key != "source"}
    documented = name in facts["multi_model_gpu_documented"]
    return InstanceType(name=name, is_known=True, multi_model_gpu_documented=documented, **values)


def _malformed(name: str) -> InvalidValueError:
    candidate = name if name.startswith("ml.") else f"ml.{name}"
    hint = did_you_mean(candidate, instance_type_names()) or 'write it as "ml.g5.xlarge"'
    return InvalidValueError(
        f'instance_type: must be the name of a SageMaker instance type, got "{name}"; {hint}'
    )
