"""``InferenceAmiVersion``: the AMI of a GPU instance, whose driver must support the container's CUDA.

Without it SageMaker uses its default AMI, whose driver is too old for CUDA 13. The container then fails with
``CannotStartContainerError`` and writes no log. AWS publishes no table of compatible pairs.
``inference_ami.json`` therefore contains only pairs with a source, and how certain each one is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.images import image_version
from triton_model_check.facts.published import load

__all__ = [
    "FOR_THE_IMAGE",
    "InferenceAmi",
    "ami_of_cuda",
    "cuda_mismatch",
    "default_inference_ami",
    "given_ami_version",
    "inference_ami_names",
    "is_same_cuda",
    "newest_ami",
]

Certainty = Literal["observed", "inferred"]
_NAME = re.compile(r"al\d+-ami-sagemaker-inference-[a-z0-9-]+")
# NVIDIA Triton release notes: 22.12 has CUDA 11.8, 23.01 has 12.0, 25.08 has 13.0.
_CUDA_12_SINCE, _CUDA_13_SINCE = "23.01", "25.08"
_CUDA = re.compile(r"(\d+)\.\d+")


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

        A name of the same form that is not in the table, or a CDK token, is accepted with ``is_known=False``.

        Args:
            version: Name of an AMI, or a CDK token.

        Raises:
            InvalidValueError: the string is neither.
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
            f'inference_ami_version: must be the name of a SageMaker inference AMI, got "{version}"; {hint}'
        )

    def __str__(self) -> str:
        return self.version


FOR_THE_IMAGE = InferenceAmi("", is_known=False)
"""Chooses the AMI that the container image needs.

It is the default of properties for which ``None`` means SageMaker's default AMI.
"""


@dataclass(frozen=True, slots=True)
class AmiChoice:
    """The AMI for a container image on an instance type, and how certain that is.

    ``ami`` is ``None`` if SageMaker's default is right, or if no source states a compatible one. In the
    second case ``certainty`` is ``None`` too, and ``finding`` is a warning.
    """

    ami: InferenceAmi | None
    certainty: Certainty | None = None
    source: str = ""
    finding: Finding | None = None

    @property
    def version(self) -> str | None:
        """The name of the AMI; ``None`` for SageMaker's default."""
        return None if self.ami is None else self.ami.version


def given_ami_version(given: InferenceAmi | str | None) -> str | None:
    """Return the name of an AMI that was chosen; ``None`` for SageMaker's default.

    Raises:
        InvalidValueError: the string is not the name of an inference AMI.
    """
    return None if given is None else InferenceAmi.of(str(given)).version


def cuda_mismatch(version: str | None, image: str | None, instance_type: InstanceType) -> Finding | None:
    """Return a warning if a chosen AMI is for another major version of CUDA than a Triton image.

    A driver that is too old cannot run the image. AWS reports failures without logs for newer ones, too: its
    tests choose the AMI with the CUDA major version of the container.

    Args:
        version: Name of the chosen AMI; ``None`` for SageMaker's default.
        image: Triton release of the image; ``None`` if it is not known.
        instance_type: Instance type.
    """
    if version is None or image is None or is_token(image) or instance_type.has_gpu is False:
        return None
    ami, needed = InferenceAmi.of(version), _cuda_major_of_image(image)
    if ami.cuda is None or needed not in (12, 13) or _cuda_major(ami) == needed:
        return None
    right = ami_of_cuda(f"{needed}.0")
    is_older = _cuda_major(ami) < needed
    effect = (
        "needs a newer driver, so the container does not start"
        if is_older
        else "may not start on it: AWS reports endpoints that stay in Creating, without logs, for other "
        "containers of that version"
    )
    return Finding(
        "inference-ami-of-other-cuda",
        Severity.WARNING,
        "inference_ami_version",
        f"{ami} is for CUDA {ami.cuda}, and image {image} with CUDA {needed} {effect}",
        f"remove inference_ami_version, or set it to {right}"
        + ("" if is_older else ", or acknowledge this if the endpoint starts"),
        source="github aws/deep-learning-containers test/test_utils/constants.py: the AMI that matches the "
        "container's CUDA major version; pull request 6187; NVIDIA: CUDA compatibility",
    )


def is_same_cuda(ami: InferenceAmi, other: str | None) -> bool:
    """Return whether two AMIs have the same major version of CUDA, as far as it is known."""
    second = None if other is None else InferenceAmi.of(other)
    return (
        ami.cuda is not None
        and second is not None
        and second.cuda is not None
        and (_cuda_major(ami) == _cuda_major(second))
    )


def _cuda_major_of_image(version: str) -> int:
    """The major version of CUDA in a Triton release, by what its default AMI is."""
    known = image_version(version).cuda
    if known is not None:
        return int(known.partition(".")[0])
    return 13 if is_at_least(version, _CUDA_13_SINCE) else 12 if is_at_least(version, _CUDA_12_SINCE) else 11


def inference_ami_names() -> tuple[str, ...]:
    """Return the names in the service model."""
    return tuple(load("inference_ami")["images"])


def ami_of_cuda(cuda_version: str) -> InferenceAmi:
    """Return the AMI for a container with a CUDA version, such as ``"13.0"``.

    It is the newest AMI of the same CUDA major version: NVIDIA supports containers of any minor version on a
    driver of the same major version. If there is none, it is that of the next major version.

    Raises:
        InvalidValueError: not a version, or one that is newer than all AMIs of the table.
    """
    match = _CUDA.fullmatch(cuda_version)
    if match is None:
        raise InvalidValueError(
            f'cuda_version: must be the CUDA version of the image, got "{cuda_version}"; write it as "13.0"'
        )
    known = [each for each in map(InferenceAmi.of, inference_ami_names()) if each.cuda is not None]
    fitting = [each for each in known if _cuda_major(each) >= int(match[1])]
    if not fitting:
        raise InvalidValueError(
            f"cuda_version: no known inference AMI has a driver for CUDA {cuda_version}; set "
            "inference_ami_version to the AMI that the publisher of the image names"
        )
    oldest = min(map(_cuda_major, fitting))
    return newest_ami([each for each in fitting if _cuda_major(each) == oldest])


def _cuda_major(ami: InferenceAmi) -> int:
    return int((ami.cuda or "0").partition(".")[0])


def newest_ami(amis: Sequence[InferenceAmi]) -> InferenceAmi:
    """Return the AMI with the newest driver. One that is not in the table is newer than the table."""
    return max(amis, key=lambda ami: float(ami.driver or 0) if ami.is_known else float("inf"))


def default_inference_ami(image_version: str | None, instance_type: InstanceType) -> AmiChoice:
    """Return the AMI to use if you set none.

    CPU instances need none. For a pair of image version and instance family without a source, no AMI is set
    and a warning is returned (code ``inference-ami-unsourced``). An ``image_version`` of ``None`` (your own
    image) is such a pair on every GPU instance.
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
        message=f"no published inference AMI for {image} on {instance_type}; using SageMaker's default",
        hint="if the container fails to start, set inference_ami_version to one with a driver for its CUDA",
        source="AWS publishes no table of inference AMIs by container image and instance type",
    )
