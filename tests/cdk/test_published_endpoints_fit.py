"""What synth says of the memory of endpoints that others published, beside what they saw.

Sizes are those that the authors name, or follow from the published number of parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_repository, make_stack, write_model

from constructs_triton import (
    InstanceType,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonInferenceComponent,
    TritonMultiModelEndpoint,
)


@dataclass(frozen=True)
class Published:
    """Models with their MiB on a GPU, or on the host of a type without one.

    ``seen`` is what the author saw. ``expected`` is a part of the only warning about memory, empty
    if there is none.
    """

    source: str
    instance_type: str
    models: dict[str, int]
    seen: str
    expected: str = ""
    component: dict[str, Any] = field(default_factory=dict)
    is_multi_model: bool = False
    kind: str = "KIND_GPU"


PUBLISHED = [
    Published(
        "awslabs/extending-the-context-length-of-open-source-llms#5",
        "ml.g5.8xlarge",
        {"falconlite": 28_610},
        "CUDA out of memory; the maintainer names 30 GB for the model and 24 GB for the GPU",
        expected="at least 28.1 GiB of GPU 0, which has 22.4 GiB",
    ),
    Published(
        "awslabs/extending-the-context-length-of-open-source-llms#5, sharded",
        "ml.g4dn.12xlarge",
        {"falconlite": 28_610},
        "loads on four GPUs of 16 GB, which the model divides itself",
        kind="KIND_MODEL",
    ),
    Published(
        "aws-samples/aws-lex-conv-faq, flan-t5-xxl of 11.3 billion parameters",
        "ml.g5.8xlarge",
        {"flan_t5_xxl": 21_553},
        "the default of the app",
    ),
    Published(
        "aws-samples/aws-lex-conv-faq, falcon-7b-instruct",
        "ml.g5.8xlarge",
        {"falcon_7b": 13_752},
        "what the app deploys",
    ),
    Published(
        "philschmid.de/sagemaker-multi-replica, Llama 13B",
        "ml.p4d.24xlarge",
        {"llama_13b": 24_796},
        "eight copies on one instance of eight GPUs of 40 GB",
        component={"copy_count": 8, "number_of_accelerator_devices": 1},
    ),
    Published(
        "philschmid.de/sagemaker-multi-replica, the same model on GPUs of 24 GB",
        "ml.g5.12xlarge",
        {"llama_13b": 24_796},
        "not deployed by the author: the same model beside the post, on smaller GPUs",
        expected="at least 24.4 GiB of GPU 0, which has 22.4 GiB",
        component={"copy_count": 4, "number_of_accelerator_devices": 1},
    ),
    Published(
        "a public guide to Qwen3-ASR 1.7B with MinMemoryRequiredInMb 16384",
        "ml.g6.xlarge",
        {"qwen3_asr": 3_242},
        "one GPU a copy; nothing is said of the GPU's memory",
        component={
            "number_of_accelerator_devices": 1,
            "min_memory": cdk.Size.mebibytes(16_384),
        },
    ),
    Published(
        "aws-samples/amazon-sagemaker-genai-content-moderation#5, Qwen-VL of 9.6 billion",
        "ml.g5.8xlarge",
        {"qwen_vl": 18_311},
        "loads, and runs out of memory with requests, which are not counted",
    ),
    Published(
        "aws/amazon-sagemaker-examples, resnet_onnx_pytorch_tensorRT-backend",
        "ml.g4dn.xlarge",
        {"resnet_onnx": 98, "resnet_pt": 98, "resnet_trt": 50},
        "the type that the example names",
        is_multi_model=True,
    ),
    Published(
        "omkarwazulkar/BERT-ONNX-TensorRT-Triton-SM-Deploy-Inference",
        "ml.g5.2xlarge",
        {"bert": 420, "resnet": 98},
        "both are loaded and called",
        is_multi_model=True,
    ),
    Published(
        "unionai-oss/sagemaker-agent-examples, Stable Diffusion 1.5 in FP32",
        "ml.g4dn.4xlarge",
        {"stable_diffusion": 4_100},
        "the type of its load test",
    ),
    Published(
        "aws/sagemaker-python-sdk#1149, four BERT models",
        "ml.m5.2xlarge",
        {f"bert_{number}": 420 for number in range(4)},
        "loads; memory fills under load, which is not counted",
        is_multi_model=True,
        kind="KIND_CPU",
    ),
]


def _write(path: Path, published: Published) -> Path:
    declared = "[memory]\n"
    for name, mebibytes in published.models.items():
        write_model(path, name, group=f"kind: {published.kind}")
        is_on_host = published.kind == "KIND_CPU"
        sizes = (0, mebibytes) if is_on_host else (mebibytes, 0)
        declared += f"{name} = {{ gpu_mib = {sizes[0]}, host_mib = {sizes[1]} }}\n"
    (path / "triton-models.toml").write_text(declared)
    return path


def _add(stack: cdk.Stack, published: Published, models: Path) -> None:
    repository = add_repository(stack, models)
    instance_type = InstanceType.of(published.instance_type)
    if published.is_multi_model:
        TritonMultiModelEndpoint(
            stack, "Served", model_repository=repository, instance_type=instance_type
        )
        return
    (name,) = published.models
    if not published.component:
        TritonEndpoint(
            stack, "Served", model_repository=repository, model=name, instance_type=instance_type
        )
        return
    endpoint = TritonComponentEndpoint(
        stack, "Shared", instance_type=instance_type, min_instance_count=1, max_instance_count=1
    )
    reserved = {"min_memory": cdk.Size.gibibytes(1), **published.component}
    TritonInferenceComponent(
        stack, "Served", endpoint=endpoint, model_repository=repository, model=name, **reserved
    )


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda each: each.source.split(",")[0])
def test_warning_is_what_the_author_saw(published: Published, tmp_path: Path) -> None:
    """Where weights were too large for the GPU, there is a warning; where the model loaded, there
    is none.
    """
    stack = make_stack()
    _add(stack, published, _write(tmp_path, published))
    code = Match.string_like_regexp("target-(gpu-)?memory|component-memory-exceeds-fleet")
    found = [str(each.entry.data) for each in Annotations.from_stack(stack).find_warning("*", code)]
    assert len(found) == bool(published.expected), found
    assert published.expected in "".join(found)
