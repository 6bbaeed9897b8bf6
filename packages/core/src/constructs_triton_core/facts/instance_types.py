"""SageMaker's instance types for hosting: GPUs, memory, local disk and architecture.

The table and its sources are in ``instance_types.json``. ``InstanceType.of`` also accepts types
that are newer than the table; their hardware is then not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import load
from constructs_triton_core.spelling import closest, did_you_mean
from constructs_triton_core.tokens import is_token

__all__ = ["InstanceType", "instance_type_names"]

_NAME = re.compile(r"ml\.(?P<family>[a-z0-9-]+)\.(?P<size>[a-z0-9-]+)")
_SIZE = re.compile(r"(nano|micro|small|medium|large|\d*xlarge|metal(-\d+xl)?)")
_NVIDIA_FAMILY = re.compile(r"[gp]\d")


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One instance type; an attribute that is ``None`` is not known, and no check uses it.

    ``gpus``
        Number of NVIDIA GPUs. ``0`` for CPU types and for other accelerators, which AWS's Triton
        images do not use.
    ``gpu_memory_mib``
        Memory of **each** GPU, in MiB.
    ``compute_capability``
        NVIDIA's version of the GPU architecture, such as ``"8.6"``.
    ``memory_gib``
        Main memory, in GiB.
    ``local_storage_gb``
        Local NVMe storage, in GB. ``0`` if there is none.
    ``architecture``
        ``"x86_64"`` or ``"arm64"``.
    ``multi_model_gpu_documented``
        Whether AWS lists the type for multi-model endpoints on GPUs.
    ``is_known``
        Whether the type is in the table.
    ``name``
        Name with ``ml.``, such as ``"ml.g5.xlarge"``, or a CDK token.
    ``gpu_model``
        NVIDIA's name of the GPU, such as ``"A10G"``.
    ``vcpus``
        Number of vCPUs.
    """

    name: str
    is_known: bool = False
    gpus: int | None = None
    gpu_model: str | None = None
    gpu_memory_mib: int | None = None
    compute_capability: str | None = None
    vcpus: int | None = None
    memory_gib: float | None = None
    local_storage_gb: int | None = None
    architecture: str | None = None
    multi_model_gpu_documented: bool = False

    def __post_init__(self) -> None:
        """Fill in what the table says of a name, so that ``InstanceType("ml.g5.xlarge")`` is
        ``InstanceType.of("ml.g5.xlarge")``, as readers of ``ec2.InstanceType`` expect.
        """
        if self.is_known:
            return
        if not isinstance(self.name, str):
            raise _no_string(self.name)
        if is_token(self.name):
            return
        if _NAME.fullmatch(self.name) is None:
            raise _malformed(self.name)
        row = _row(self.name)
        if row is None and _is_misspelt(self.name):
            raise _malformed(self.name)
        for attribute, value in (row or {}).items():
            object.__setattr__(self, attribute, value)

    @classmethod
    def of(cls, name: str) -> InstanceType:
        """Return the type of that name, for example ``InstanceType.of("ml.g5.xlarge")``.

        A CDK token, or an ``ml.`` name that is not in the table, is accepted with
        ``is_known=False``.

        Args:
            name: Name with ``ml.``, or a CDK token.

        Raises:
            InvalidValueError: any other string, or a misspelt name of the table.
        """
        if not isinstance(name, str):
            raise _no_string(name)
        return cls(name) if is_token(name) else _of(name)

    @property
    def family(self) -> str:
        """The middle part of the name, such as ``"g5"``; empty for a CDK token."""
        match = _NAME.fullmatch(self.name)
        return match["family"] if match else ""

    @property
    def has_gpu(self) -> bool:
        """Whether the type has NVIDIA GPUs. It decides between the GPU and the CPU image.

        For a type that is not in the table, the letter of the family decides: AWS's NVIDIA families
        start with ``g`` or ``p``. A CDK token counts as a type without GPUs.
        """
        return self.gpus > 0 if self.gpus is not None else bool(_NVIDIA_FAMILY.match(self.family))

    @property
    def supports_volume_size(self) -> bool | None:
        """Whether ``VolumeSizeInGB`` may be set: not on types with local NVMe.

        ``None`` if not known.
        """
        return None if self.local_storage_gb is None else self.local_storage_gb == 0

    @property
    def nearest_known(self) -> str:
        """``'did you mean "ml.g5.xlarge"?'`` for an unknown type with a similar known one."""
        return (
            ""
            if self.is_known or is_token(self.name)
            else did_you_mean(self.name, instance_type_names())
        )

    def __str__(self) -> str:
        return self.name


def instance_type_names() -> tuple[str, ...]:
    """Return the names of all types in the table."""
    return tuple(load("instance_types")["types"])


@cache
def _of(name: str) -> InstanceType:
    return InstanceType(name)


def _row(name: str) -> dict[str, Any] | None:
    """Return the attributes of a type in the table."""
    facts = load("instance_types")
    row: dict[str, Any] | None = facts["types"].get(name)
    if row is None:
        return None
    values = {key: value for key, value in row.items() if key != "source"}
    documented = name in facts["multi_model_gpu_documented"]
    return {**values, "is_known": True, "multi_model_gpu_documented": documented}


def _is_misspelt(name: str) -> bool:
    """Whether an unknown name is a known one with a typing error, and not a type that is new.

    A new family resembles a known one as much as a misspelt family does. So only these count: a
    size that AWS cannot mean, and a known name with letters in another order.
    """
    _, family, size = name.split(".")
    for known_name in instance_type_names():
        _, known_family, known_size = known_name.split(".")
        if size == known_size and sorted(family) == sorted(known_family):
            return True

    is_possible_size = _SIZE.fullmatch(size) is not None
    return not is_possible_size and closest(name, instance_type_names()) is not None


def _no_string(name: object) -> InvalidValueError:
    """Return the error about a name that is no string, such as a token of another type."""
    got = repr(name)
    fix = '"ml.g5.xlarge"'
    if is_token(name):
        got = "another value that is known only at deployment"
        fix = "cdk.Token.as_string(value)"
    return InvalidValueError(f"instance_type: must be a string, got {got}; write {fix}")


def _malformed(name: str) -> InvalidValueError:
    """Return the error about a string that has not the form of an instance type."""
    candidate = name if name.startswith("ml.") else f"ml.{name}"
    hint = did_you_mean(candidate, instance_type_names()) or 'write it as "ml.g5.xlarge"'
    return InvalidValueError(
        f'instance_type: must be the name of a SageMaker instance type, got "{name}"; {hint}'
    )
