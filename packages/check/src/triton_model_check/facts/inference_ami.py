"""``InferenceAmiVersion``: the AMI of a GPU instance, whose driver must support the container's
CUDA.

Without it SageMaker uses its default AMI, whose driver is too old for CUDA 13. The container then
fails with ``CannotStartContainerError`` and writes no log. AWS publishes no table of compatible
pairs. ``inference_ami.json`` therefore contains only pairs with a source, and how certain each one
is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_string
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.published import load

__all__ = ["InferenceAmi", "default_inference_ami", "inference_ami_names"]

Certainty = Literal["observed", "inferred"]
_NAME = re.compile(r"al\d+-ami-sagemaker-inference-[a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class InferenceAmi:
    """One inference AMI.

    Args:
        version: Name of the AMI, the value of ``InferenceAmiVersion``.
        is_known: Whether the AMI is in the table.
        driver: Version of the NVIDIA driver; ``None`` if AWS does not state it.
        cuda: Version of CUDA; ``None`` if AWS does not state it.
    """

    version: str
    is_known: bool
    driver: str | None = None
    cuda: str | None = None

    @classmethod
    def of(cls, version: str) -> InferenceAmi:
        """Return the AMI of that name, for example ``"al2023-ami-sagemaker-inference-gpu-4-1"``.

        A name of the same form that is not in the table, or a CDK token, is accepted with
        ``is_known=False``.

        Args:
            version: Name of an AMI, or a CDK token.

        Raises:
            InvalidValueError: the string is neither.
        """
        check_string("inference_ami_version", version)
        row: dict[str, Any] | None = load("inference_ami")["images"].get(version)
        if row is not None:
            return cls(version, is_known=True, **row)
        if is_token(version) or _NAME.fullmatch(version):
            return cls(version, is_known=False)
        hint = (
            did_you_mean(version, inference_ami_names())
            or f"use one of {', '.join(inference_ami_names())}"
        )
        raise InvalidValueError(
            "inference_ami_version: must be the name of a SageMaker inference AMI, "
            f'got "{version}"; {hint}'
        )

    def __str__(self) -> str:
        return self.version


@dataclass(frozen=True, slots=True)
class AmiChoice:
    """The AMI for a container image on an instance type, and how certain that is.

    ``ami`` is ``None`` if SageMaker's default is right, or if no source states a compatible one. In
    the second case ``certainty`` is ``None`` too, and ``finding`` is a warning.
    """

    ami: InferenceAmi | None
    certainty: Certainty | None = None
    source: str = ""
    finding: Finding | None = None

    @property
    def version(self) -> str | None:
        """The name of the AMI; ``None`` for SageMaker's default."""
        return None if self.ami is None else self.ami.version


def inference_ami_names() -> tuple[str, ...]:
    """Return the names in the service model."""
    return tuple(load("inference_ami")["images"])


def default_inference_ami(image_version: str | None, instance_type: InstanceType) -> AmiChoice:
    """Return the AMI to use if you set none.

    CPU instances need none. For a pair of image version and instance family without a source, no
    AMI is set and a warning is returned (code ``inference-ami-unsourced``). An ``image_version`` of
    ``None`` (your own image) is such a pair on every GPU instance. For a type that is known only at
    deployment, no AMI can be chosen, which is a warning too (``inference-ami-of-token``).
    """
    if is_token(instance_type.name):
        is_needed = image_version is None or _newest_default(image_version) is not None
        return AmiChoice(None, finding=_unknown_type(image_version) if is_needed else None)
    if not instance_type.has_gpu:
        return AmiChoice(None)
    for row in load("inference_ami")["defaults"]:
        if instance_type.family in row["families"] and _covers(row, image_version):
            ami = InferenceAmi.of(row["ami"]) if row["ami"] else None
            return AmiChoice(ami, row["certainty"], row["source"])
    return AmiChoice(None, finding=_unsourced(image_version, instance_type))


def _newest_default(image_version: str) -> str | None:
    """Return the AMI that some family of instances needs for an image; ``None`` if none does."""
    amis = [row["ami"] for row in load("inference_ami")["defaults"] if _covers(row, image_version)]
    return max((each for each in amis if each), default=None)


def _unknown_type(image_version: str | None) -> Finding:
    """Return the warning about an instance type that is known only at deployment."""
    image = f"image {image_version}" if image_version else "the image"
    ami = None if image_version is None else _newest_default(image_version)
    return Finding(
        code="inference-ami-of-token",
        severity=Severity.WARNING,
        path="instance_type",
        message=(
            f"it is known only at deployment, so no inference AMI is chosen, and {image} does not "
            "start where the driver of SageMaker's default host is too old"
        ),
        hint=(
            f'set inference_ami_version="{ami or "al2023-ami-sagemaker-inference-gpu-4-1"}" if the '
            "type has GPUs, or inference_ami_version=None if it has none"
        ),
        source="github aws/deep-learning-containers docs/sglang/deployment/sagemaker.md: the "
        "default host AMI has incompatible drivers for CUDA 13 images",
    )


def _covers(row: dict[str, Any], image_version: str | None) -> bool:
    if image_version is None or is_token(image_version):
        return False
    return is_at_least(image_version, row["since"]) and not (
        row["before"] and is_at_least(image_version, row["before"])
    )


def _unsourced(image_version: str | None, instance_type: InstanceType) -> Finding:
    """Return the warning about an image and a type without a published inference AMI."""
    image = f"image {image_version}" if image_version else "this image"
    return Finding(
        code="inference-ami-unsourced",
        severity=Severity.WARNING,
        path="inference_ami",
        message=(
            f"no published inference AMI for {image} on {instance_type}; using SageMaker's default"
        ),
        hint=(
            "if the container fails to start, "
            "set inference_ami_version to one with a driver for its CUDA"
        ),
        source="AWS publishes no table of inference AMIs by container image and instance type",
    )
