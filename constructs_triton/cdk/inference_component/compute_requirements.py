"""What each copy of a component reserves on an instance, and whether an instance has it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from aws_cdk import Size, SizeRoundingBehavior
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.inference_component.properties import CopyOptions
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.tokens import is_token

# The reservation that was refused in the only published measurement, as a part of the instance's
# memory.
_REFUSED_PART = 1 / 4


@dataclass(frozen=True, slots=True)
class ComputeRequirements:
    """The reservation of each copy. ``gpus`` is 0 for a component that uses none."""

    gpus: float
    memory_mib: float
    max_memory_mib: float | None
    cpu_cores: float | None

    @classmethod
    def of(cls, options: CopyOptions, instance_type: InstanceType) -> ComputeRequirements:
        """Return what a component asks for.

        Raises:
            InvalidValueError: SageMaker would refuse a value, or an instance of the type has less.
        """
        max_memory = options["max_memory"]
        requirements = cls(
            _gpus(options["number_of_accelerator_devices"], instance_type),
            _mebibytes(options["min_memory"]),
            None if max_memory is None else _mebibytes(max_memory),
            options["number_of_cpu_cores"],
        )
        requirements._check_memory(instance_type)
        requirements._check_cores(instance_type)
        return requirements

    @property
    def known_max_memory_mib(self) -> float | None:
        """What a copy may use of the memory; ``None`` if it is not limited, or a token."""
        return None if is_token(self.max_memory_mib or 0) else self.max_memory_mib

    def part_of(self, instance_type: InstanceType) -> InstanceType:
        """Return the instance type with the GPUs of one copy,
        which the container numbers from 0.
        """
        if is_token(self.gpus) or is_token(instance_type.name):
            return instance_type
        return replace(instance_type, gpus=int(self.gpus))

    def warnings(self, instance_type: InstanceType) -> list[Finding]:
        """Return a warning if the reservation is large compared to the memory of the instance."""
        memory = memory_mib_of(instance_type)
        if memory is None or is_token(self.memory_mib):
            return []
        refused = memory * _REFUSED_PART
        if self.memory_mib < refused:
            return []
        return [
            Finding(
                "component-memory-may-not-fit",
                Severity.WARNING,
                "min_memory",
                f"SageMaker may not place a copy that reserves {self.memory_mib:g} MiB of the "
                f"{memory:g} MiB of {instance_type}; how much of an instance components can "
                "reserve is not published, and the only published measurement is of ml.g5.xlarge, "
                "where SageMaker accepted 1024 MiB of 16 GiB for a component and refused 4096 MiB",
                f"set min_memory below {refused:g} MiB (it is a reservation and not a limit), or "
                "acknowledge this if you have deployed it",
                source=(
                    "Hugging Face cloud skills, measured on ml.g5.xlarge in us-east-1 in July 2026"
                ),
            )
        ]

    def render(
        self,
    ) -> sagemaker.CfnInferenceComponent.InferenceComponentComputeResourceRequirementsProperty:
        """Return the property of the component."""
        return (
            sagemaker.CfnInferenceComponent.InferenceComponentComputeResourceRequirementsProperty(
                min_memory_required_in_mb=self.memory_mib,
                max_memory_required_in_mb=self.max_memory_mib,
                number_of_cpu_cores_required=self.cpu_cores,
                # SageMaker refuses the number on instances without GPUs, and 0 everywhere.
                number_of_accelerator_devices_required=self.gpus
                if is_token(self.gpus)
                else self.gpus or None,
            )
        )

    def _check_memory(self, instance_type: InstanceType) -> None:
        """Check that the memory of a copy fits on an instance, and that its limits are in order."""
        check_range("min_memory", self.memory_mib, limits.MEMORY_MIB)
        memory = memory_mib_of(instance_type)
        if memory is not None and not is_token(self.memory_mib) and self.memory_mib > memory:
            raise InvalidValueError(
                f"min_memory: must fit on one {instance_type}, which has {memory:g} MiB, got "
                f"{self.memory_mib:g} MiB; lower it, or use a larger instance type"
            )
        most = self.max_memory_mib
        if most is None:
            return
        check_range("max_memory", most, limits.MEMORY_MIB)
        if not (is_token(most) or is_token(self.memory_mib)) and most < self.memory_mib:
            raise InvalidValueError(
                f"max_memory: must not be below min_memory {self.memory_mib:g} MiB, "
                f"got {most:g} MiB; raise it"
            )

    def _check_cores(self, instance_type: InstanceType) -> None:
        """Check that an instance has the CPU cores of a copy."""
        cores, vcpus = self.cpu_cores, instance_type.vcpus
        if cores is None:
            return
        check_range("number_of_cpu_cores", cores, limits.CPU_CORES)
        if vcpus is not None and not is_token(cores) and cores > vcpus:
            raise InvalidValueError(
                f"number_of_cpu_cores: must fit on one {instance_type}, which has {vcpus} vCPUs, "
                f"got {cores:g}; lower it, or use a larger instance type"
            )


def _gpus(given: float | None, instance_type: InstanceType) -> float:
    """Return the number of GPUs of a copy.

    Raises:
        InvalidValueError: the number is required, or an instance has not that many.
    """
    is_token_type = is_token(instance_type.name)
    if not is_token_type and instance_type.is_known and not instance_type.has_gpu:
        return _none_on_cpu(given, instance_type)
    if given is None:
        if is_token_type or not instance_type.has_gpu:
            return 0
        raise InvalidValueError(
            f"number_of_accelerator_devices: is required on {instance_type}, which has GPUs; set "
            "the GPUs that each copy uses, or 0 if all models of the component run on the CPU"
        )
    if is_token(given) or given == 0:
        return given
    _check_whole_gpus(given)
    if instance_type.gpus is not None and given > instance_type.gpus:
        raise InvalidValueError(
            f"number_of_accelerator_devices: must fit on one {instance_type}, which has "
            f"{instance_type.gpus} GPU{'s' if instance_type.gpus > 1 else ''}, got {given:g}; "
            "lower it, or use a larger instance type"
        )
    return given


def _check_whole_gpus(given: float) -> None:
    """Check that a copy has whole GPUs: SageMaker does not share one between copies."""
    is_number = (
        isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
    )
    if is_number and (given != int(given) or given < 1):
        raise InvalidValueError(
            f"number_of_accelerator_devices: each copy has whole GPUs, at least 1, got {given:g}; "
            "round it. For several models on one GPU, put them into one repository, or use "
            "TritonMultiModelEndpoint"
        )
    check_range("number_of_accelerator_devices", given, limits.ACCELERATOR_DEVICES)


def _none_on_cpu(given: float | None, instance_type: InstanceType) -> float:
    """Return 0, the number of GPUs on a type without any.

    Raises:
        InvalidValueError: another number was given.
    """
    if given is None:
        return 0
    if is_token(given):
        got = "a value known at deployment"
    elif given == 0:
        return 0
    else:
        got = f"{given:g}"
    raise InvalidValueError(
        f"number_of_accelerator_devices: {instance_type} has no GPU, got {got}; remove it, "
        "or use a GPU instance type on the endpoint"
    )


def _mebibytes(size: Size) -> float:
    value = size.to_mebibytes(rounding=SizeRoundingBehavior.NONE)
    return value if is_token(value) else math.ceil(value)


def memory_mib_of(instance_type: InstanceType) -> float | None:
    """Return the memory of an instance in MiB; ``None`` for a type that is not known."""
    return None if instance_type.memory_gib is None else instance_type.memory_gib * 1024
