"""The choice of an inference AMI: the one that was given,
and the one that the container's CUDA needs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.images import image_version
from triton_model_check.facts.inference_ami import InferenceAmi, inference_ami_names

# NVIDIA Triton release notes: 22.12 has CUDA 11.8, 23.01 has 12.0, 25.08 has 13.0.
_CUDA_12_SINCE, _CUDA_13_SINCE = "23.01", "25.08"
_CUDA = re.compile(r"(\d+)\.\d+")

FOR_THE_IMAGE = InferenceAmi("", is_known=False)
"""Chooses the AMI that the container image needs.

It is the default of properties for which ``None`` means SageMaker's default AMI.
"""


def given_ami_version(given: InferenceAmi | str | None) -> str | None:
    """Return the name of an AMI that was chosen; ``None`` for SageMaker's default.

    Raises:
        InvalidValueError: the string is not the name of an inference AMI.
    """
    return None if given is None else InferenceAmi.of(str(given)).version


def cuda_mismatch(
    version: str | None, image: str | None, instance_type: InstanceType
) -> Finding | None:
    """Return a warning if a chosen AMI is for another major version of CUDA than a Triton image.

    A driver that is too old cannot run the image. AWS reports failures without logs for newer ones,
    too: its tests choose the AMI with the CUDA major version of the container.

    Args:
        version: Name of the chosen AMI; ``None`` for SageMaker's default.
        image: Triton release of the image; ``None`` if it is not known.
        instance_type: Instance type.
    """
    if version is None or image is None or is_token(image) or instance_type.has_gpu is False:
        return None
    ami, needed = InferenceAmi.of(version), cuda_major_of_image(image)
    if ami.cuda is None or needed not in (12, 13) or _cuda_major(ami) == needed:
        return None
    right = ami_of_cuda(f"{needed}.0")
    is_older = _cuda_major(ami) < needed
    effect = (
        "needs a newer driver, so the container does not start"
        if is_older
        else (
            "may not start on it: AWS reports endpoints that stay in Creating, without logs, for "
            "other containers of that version"
        )
    )
    return Finding(
        "inference-ami-of-other-cuda",
        Severity.WARNING,
        "inference_ami_version",
        f"{ami} is for CUDA {ami.cuda}, and image {image} with CUDA {needed} {effect}",
        f"remove inference_ami_version, or set it to {right}"
        + ("" if is_older else ", or acknowledge this if the endpoint starts"),
        source=(
            "github aws/deep-learning-containers test/test_utils/constants.py: the AMI that "
            "matches the container's CUDA major version; pull request 6187; "
            "NVIDIA: CUDA compatibility"
        ),
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


def cuda_major_of_image(version: str) -> int:
    """Return the major version of CUDA in a Triton release."""
    known = image_version(version).cuda
    if known is not None:
        return int(known.partition(".")[0])
    if is_at_least(version, _CUDA_13_SINCE):
        return 13
    if is_at_least(version, _CUDA_12_SINCE):
        return 12
    return 11


def ami_of_cuda(cuda_version: str) -> InferenceAmi:
    """Return the AMI for a container with a CUDA version, such as ``"13.0"``.

    It is the newest AMI of the same CUDA major version: NVIDIA supports containers of any minor
    version on a driver of the same major version. If there is none, it is that of the next major
    version.

    Raises:
        InvalidValueError: not a version, or one that is newer than all AMIs of the table.
    """
    match = _CUDA.fullmatch(cuda_version)
    if match is None:
        raise InvalidValueError(
            "cuda_version: must be the CUDA version of the image, "
            f'got "{cuda_version}"; write it as "13.0"'
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
    """Return the AMI with the newest driver.

    One that is not in the table is newer than the table.
    """
    return max(amis, key=lambda ami: float(ami.driver or 0) if ami.is_known else float("inf"))
