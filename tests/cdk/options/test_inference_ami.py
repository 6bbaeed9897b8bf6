"""A chosen inference AMI, and the CUDA of the image."""

from __future__ import annotations

import pytest

from constructs_triton.cdk.options.inference_ami import cuda_mismatch
from constructs_triton_core.facts.instance_types import InstanceType

GPU_4_1, GPU_3_1 = "al2023-ami-sagemaker-inference-gpu-4-1", "al2-ami-sagemaker-inference-gpu-3-1"


@pytest.mark.parametrize(
    ("ami", "image", "instance_type", "message"),
    [
        (GPU_4_1, "25.04", "ml.g5.xlarge", "image 25.04 with CUDA 12 may not start on it"),
        (
            GPU_3_1,
            "26.05",
            "ml.g5.xlarge",
            "with CUDA 13 needs a newer driver, so the container does not",
        ),
        (GPU_3_1, "26.04", "ml.g5.xlarge", "with CUDA 13 needs a newer driver"),  # by its release
        (GPU_3_1, "25.04", "ml.g5.xlarge", None),
        (GPU_4_1, "26.05", "ml.g5.xlarge", None),
        (GPU_4_1, "22.05", "ml.g5.xlarge", None),  # nothing is reported about CUDA 11
        (GPU_4_1, "25.04", "ml.m5.large", None),
        (
            None,
            "26.05",
            "ml.g5.xlarge",
            None,
        ),  # inference_ami_version=None asks for SageMaker's default
        (GPU_4_1, None, "ml.g5.xlarge", None),
        ("al2023-ami-sagemaker-inference-gpu-5-1", "25.04", "ml.g5.xlarge", None),
    ],
)
def test_chosen_ami_for_another_cuda_is_a_warning(
    ami: str | None, image: str | None, instance_type: str, message: str | None
) -> None:
    """An AMI is compared with the major version of the image's CUDA;
    what is not known is not compared.
    """
    found = cuda_mismatch(ami, image, InstanceType.of(instance_type))
    assert (found is None) == (message is None)
    if found is not None and message is not None:
        assert message in found.message
        assert (found.code, found.severity) == ("inference-ami-of-other-cuda", "warning")
        right = GPU_3_1 if image == "25.04" else GPU_4_1
        assert found.hint.startswith(f"remove inference_ami_version, or set it to {right}")
