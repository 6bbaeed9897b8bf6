"""``InferenceAmiVersion``: the host image of a GPU instance, whose driver has to fit the container's CUDA.

Without it SageMaker starts its default host, whose driver is too old for CUDA 13: the container then fails
with ``CannotStartContainerError`` and no log. AWS publishes no table of what fits what, so
``inference_ami.json`` holds only pairs somebody vouches for, and says how sure each is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.facts.published import load
from constructs_triton.facts.versions import is_at_least
from constructs_triton.findings import Finding, Severity
from constructs_triton.spelling import did_you_mean
from constructs_triton.tokens import is_token

__all__ = [
    "FOR_THE_IMAGE",
    "AmiChoice",
    "Certainty",
    "InferenceAmi",
    "default_inference_ami",
    "inference_ami_names",
]

Certainty = Literal["observed", "inferred"]
_NAME = re.compile(r"al\d+-ami-sagemaker-inference-[a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class InferenceAmi:
    """One host image; ``driver`` and ``cuda`` are what it ships, ``None`` where AWS says nothing."""

    version: str
    is_known: bool
    driver: str | None = None
    cuda: str | None = None

    @classmethod
    def of(cls, version: str) -> InferenceAmi:
        """The host image of that name, for example ``"al2023-ami-sagemaker-inference-gpu-4-1"``.

        A name of the same make that is not in the table, or a CDK token, passes with ``is_known=False``.
        Raises ``InvalidValueError`` for any other text.
        """
        row: dict[str, Any] | None = load("inference_ami")["images"].get(version)
        if row is not None:
            return cls(version, is_known=True, **row)
        if is_token(version) or _NAME.fullmatch(version):
            return cls(version, is_known=False)
        hint = (
            did_you_mean(version, inference_ami_names()) or f"use one of {', '.join(inference_ami_names())}"
        )
        raise InvalidValueError(
            f'inference_ami: must be the name of a SageMaker inference AMI, got "{version}"; {hint}'
        )

    def __str__(self) -> str:
        return self.version


FOR_THE_IMAGE = InferenceAmi("", is_known=False)
"""Says that nobody chose: the host image is the one that the container image needs.

It is the default of properties that take ``None`` for "no host image at all".
"""


@dataclass(frozen=True, slots=True)
class AmiChoice:
    """The host image for a container on an instance type, and how sure that is.

    ``ami`` is ``None`` where SageMaker's default is right or nobody vouches for any; in the latter case
    ``finding`` warns. ``certainty`` is ``None`` where there is no source.
    """

    ami: InferenceAmi | None
    certainty: Certainty | None = None
    source: str = ""
    finding: Finding | None = None


def inference_ami_names() -> tuple[str, ...]:
    """The names that the service model lists."""
    return tuple(load("inference_ami")["images"])


def default_inference_ami(image_version: str | None, instance_type: InstanceType) -> AmiChoice:
    """The host image to set where the user sets none.

    CPU instances need none. A pair of image version and instance family without a source is left unset and
    warned about (code ``inference-ami-unsourced``). An ``image_version`` of ``None``, an image of one's own,
    is such a pair on every GPU instance.
    """
    if not instance_type.has_gpu:
        return AmiChoice(None)
    for row in load("inference_ami")["defaults"]:
        if instance_type.family in row["families"] and _covers(row, image_version):
            ami = InferenceAmi.of(row["ami"]) if row["ami"] else None
            return AmiChoice(ami, row["certainty"], row["source"])
    return AmiChoice(None, finding=_unsourced(image_version, instance_type))


def _covers(row: dict[str, Any], image_version: str | None) -> bool:
    if image_version is None or is_token(image_version):
        return False
    return is_at_least(image_version, row["since"]) and not (
        row["before"] and is_at_least(image_version, row["before"])
    )


def _unsourced(image_version: str | None, instance_type: InstanceType) -> Finding:
    image = f"image {image_version}" if image_version else "this image"
    return Finding(
        code="inference-ami-unsourced",
        severity=Severity.WARNING,
        path="inference_ami",
        message=f"nobody has published which host image runs {image} on {instance_type}, "
        "so SageMaker's default is used",
        hint="where the container does not start, set InferenceAmi.of(...) with a driver that fits its CUDA",
        source="AWS publishes no table of host images by container image and instance type",
    )
