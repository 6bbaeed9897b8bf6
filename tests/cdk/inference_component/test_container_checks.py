"""What synth finds in the environment of a container of a language model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from component_apps import add_endpoint, warnings_of

from constructs_triton import ContainerInferenceComponent, ModelSource, ServingImage
from constructs_triton.cdk.inference_component.container_checks import (
    ContainerUnderCheck,
    container_findings,
)
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from triton_model_check.facts.backend_releases import engine_arguments
from triton_model_check.facts.published import load

AWS = "763104351884.dkr.ecr.eu-west-1.amazonaws.com"
VLLM = f"{AWS}/vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"
HUGGING_FACE = f"{AWS}/huggingface-vllm:0.27-gpu-py312-cu130-ubuntu22.04"
LMI = f"{AWS}/djl-inference:0.38.0-lmi29.0.0-cu130"
SGLANG = f"{AWS}/sglang:0.5.20-gpu-py312-cu130-ubuntu24.04-sagemaker"
LLAMA = f"{AWS}/llama-cpp:server-sagemaker-cuda-v1"
OWN = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/chat:1"
ID = "Qwen/Qwen3-8B"
MODEL = {
    VLLM: {"SM_VLLM_MODEL": ID},
    HUGGING_FACE: {"HF_MODEL_ID": ID},
    LMI: {"HF_MODEL_ID": ID},
    SGLANG: {"SM_SGLANG_MODEL_PATH": ID},
    LLAMA: {"SM_LLAMA_CPP_HF_REPO": "ggml-org/gemma-3-1b-it-GGUF"},
    OWN: {"SM_VLLM_MODEL": ID},
}


class Case(NamedTuple):
    """A container with one mistake: what is found,
    and the variables with which nothing is found.
    """

    image: str
    mistake: dict[str, str]
    found: str
    fixed: dict[str, str]
    more: Mapping[str, Any] = MappingProxyType({})


def find(image: str | ServingImage, environment: dict[str, str], **more: Any) -> list[Finding]:
    """Check a container of one GPU without model_data and isolation,
    unless ``more`` says otherwise.
    """
    given = {"gpus": 1, "has_model_data": False, "is_isolated": False, **more}
    source = image if isinstance(image, ServingImage) else ServingImage.from_registry(image)
    return container_findings(ContainerUnderCheck(source, environment, **given))


def described(findings: list[Finding]) -> list[str]:
    """Severity, code and path of each finding."""
    return [f"{each.severity} {each.code} {each.path}" for each in findings]


DATA = {"has_model_data": True}
ISOLATED = {"has_model_data": True, "is_isolated": True}
UNUSED = "warning container-unused-gpus"
CASES = [
    Case(
        VLLM,
        {"OPTION_MAX_MODEL_LEN": "8192"},
        "error container-other-image",
        {"SM_VLLM_MAX_MODEL_LEN": "8192"},
    ),
    Case(
        LMI,
        {"SM_VLLM_MAX_MODEL_LEN": "8192"},
        "error container-other-image",
        {"OPTION_MAX_MODEL_LEN": "8192"},
    ),
    Case(
        SGLANG, {"OPTION_DTYPE": "auto"}, "error container-other-image", {"SM_SGLANG_DTYPE": "auto"}
    ),
    Case(
        VLLM,
        {"SM_NUM_GPUS": "1"},
        "error container-other-image",
        {"SM_VLLM_TENSOR_PARALLEL_SIZE": "1"},
    ),
    Case(VLLM, {"SM_VLLM_PORT": "9000"}, "error container-port", {"SM_VLLM_PORT": "8080"}),
    Case(VLLM, {"SM_VLLM_HOST": "127.0.0.1"}, "error container-port", {"SM_VLLM_HOST": "0.0.0.0"}),
    Case(VLLM, {"SM_VLLM_UDS": "/tmp/vllm"}, "error container-port", {}),
    Case(SGLANG, {"SM_SGLANG_HOST": "localhost"}, "error container-port", {}),
    Case(LLAMA, {"SM_LLAMA_CPP_PORT": "8081"}, "error container-port", {}),
    Case(VLLM, {"SM_VLLM_TENSOR_PARALLEL_SIZE": "2"}, "error container-parallel-size", {}),
    Case(
        HUGGING_FACE,
        {"SM_VLLM_TENSOR_PARALLEL_SIZE": "2", "SM_VLLM_PIPELINE_PARALLEL_SIZE": "4"},
        "error container-parallel-size",
        {"SM_VLLM_TENSOR_PARALLEL_SIZE": "2", "SM_VLLM_PIPELINE_PARALLEL_SIZE": "2"},
        {"gpus": 4},
    ),
    Case(
        LMI,
        {"TENSOR_PARALLEL_DEGREE": "2"},
        "error container-parallel-size",
        {"TENSOR_PARALLEL_DEGREE": "max"},
    ),
    Case(
        SGLANG,
        {"SM_SGLANG_TP": "4"},
        "error container-parallel-size",
        {"SM_SGLANG_TP": "2"},
        {"gpus": 2},
    ),
    Case(VLLM, {}, UNUSED, {"SM_VLLM_TENSOR_PARALLEL_SIZE": "4"}, {"gpus": 4}),
    Case(VLLM, {}, UNUSED, {"SM_VLLM_DATA_PARALLEL_SIZE": "4"}, {"gpus": 4}),
    Case(
        LMI,
        {"OPTION_TENSOR_PARALLEL_SIZE": "2", "TENSOR_PARALLEL_DEGREE": "2"},
        "error container-parallel-name",
        {"TENSOR_PARALLEL_DEGREE": "2"},
        {"gpus": 2},
    ),
    Case(LMI, {"OPTION_PIPELINE_PARALLEL_DEGREE": "2"}, "error container-parallel-name", {}),
    Case(VLLM, {}, "error container-hub-model", {"SM_VLLM_MODEL": ""}, ISOLATED),
    Case(
        HUGGING_FACE,
        {"SM_VLLM_TOKENIZER": ID},
        "error container-hub-model",
        {"SM_VLLM_TOKENIZER": "/opt/ml/model"},
        ISOLATED,
    ),
    Case(
        VLLM,
        {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"},
        "error container-lora",
        {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true", "SM_VLLM_ENABLE_LORA": "True"},
    ),
    Case(
        VLLM,
        {"SM_VLLM_ENABLE_PREFIX_CACHING": "False"},
        "warning container-false-flag",
        {"SM_VLLM_NO_ENABLE_PREFIX_CACHING": "true"},
    ),
    Case(
        VLLM,
        {"SM_VLLM_MAX_MODEL_LENGHT": "1"},
        "warning container-unknown-variable",
        {"SM_VLLM_MAX_MODEL_LEN": "1"},
    ),
    Case(
        LMI,
        {"OPTION_MAX_MODEL_LENGHT": "1"},
        "warning container-unknown-variable",
        {"OPTION_MAX_MODEL_LEN": "1"},
    ),
]


def case_id(case: Case) -> str:
    """The image and the mistake."""
    return f"{_kind_of(case.image)} {case.found.split('-', 1)[1]} {[*case.mistake][:1]}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_mistake_is_found_until_it_is_fixed(case: Case) -> None:
    """Each mistake has one finding with variable, fix and source;
    the corrected environment has none.
    """
    (found,) = find(case.image, {**MODEL[case.image], **case.mistake}, **case.more)
    assert described([found])[0].startswith(f'{case.found} environment["')
    assert found.hint
    assert found.source == load("containers")["sources"][_kind_of(case.image)]
    assert not find(case.image, {**MODEL[case.image], **case.fixed}, **case.more)


def _kind_of(image: str) -> str:
    repository = image.partition("/")[2].partition(":")[0]
    return next(
        str(each["name"])
        for each in load("containers")["kinds"]
        if repository in each["repositories"]
    )


@pytest.mark.parametrize(
    ("image", "severity"),
    [(VLLM, "error"), (SGLANG, "error"), (LMI, "warning"), (LLAMA, "warning")],
)
def test_container_needs_a_model(image: str, severity: str) -> None:
    """Without a model it is an error where nothing, or another model, would be served;
    both ways fix it.
    """
    (found,) = find(image, {})
    assert (found.code, found.severity) == ("container-no-model", severity)
    variable = re.search(r"or (\w+) to its id", found.hint)
    assert variable
    assert not find(image, {variable[1]: ID})
    assert not find(image, {}, has_model_data=True)


@pytest.mark.parametrize(
    "image", [OWN, OWN.replace("team/chat", "vllm"), "registry.example.com/vllm:1"]
)
def test_your_own_image_gets_warnings(image: str) -> None:
    """Its script is not known, so the name of its repository or its variables
    decide what is a warning.
    """
    found = find(image, {"SM_VLLM_PORT": "9000", "SM_VLLM_TENSOR_PARALLEL_SIZE": "2"})
    assert {each.code: each.severity for each in found} == dict.fromkeys(
        ("container-no-model", "container-port", "container-parallel-size"), "warning"
    )


@pytest.mark.parametrize(
    ("image", "severity"),
    [(VLLM, "error"), (f"{AWS}/sagemaker-tritonserver:26.05-py3", "error"), (OWN, "warning")],
    ids=["AWS's vLLM", "AWS's Triton", "own"],
)
def test_variable_of_triton_is_an_error_where_the_image_is_known(image: str, severity: str) -> None:
    """AWS's other images ignore it and its Triton needs models;
    your own may have Triton's start script.
    """
    found = find(image, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m"}, has_model_data=True)
    variable = 'environment["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"]'
    assert described(found) == [f"{severity} container-of-triton {variable}"]


@pytest.mark.parametrize(
    ("image", "environment"),
    [
        (OWN, {}),
        (OWN, {"SM_VLLM_PORT": "9000", "OPTION_PORT": "9000"}),
        (
            f"{AWS}/djl-inference:0.33.0-tensorrtllm0.21.0-cu128",
            {"OPTION_PIPELINE_PARALLEL_DEGREE": "2"},
        ),
        (f"{AWS}/vllm:omni-sagemaker-cuda-v1", {"SM_VLLM_PORT": "9000"}),
        (f"{AWS}/huggingface-pytorch-inference:2.6", {"SM_VLLM_PORT": "9000"}),
    ],
    ids=[
        "own",
        "variables of two images",
        "TensorRT-LLM",
        "several stages",
        "another image of AWS",
    ],
)
def test_unknown_containers_are_not_checked(image: str, environment: dict[str, str]) -> None:
    """Nothing is said about containers that the table does not describe."""
    assert not find(image, environment)


def test_other_settings_of_lmi_may_win() -> None:
    """A serving.properties in model_data, or another handler, turns errors of LMI into warnings."""
    environment = {"HF_MODEL_ID": ID, "TENSOR_PARALLEL_DEGREE": "2"}
    for given, more in (
        (environment, DATA),
        ({**environment, "OPTION_ENTRYPOINT": "model.py"}, {}),
    ):
        assert [each.severity for each in find(LMI, given, **more)] == ["warning"]


def test_cache_of_the_hub_in_model_data_is_not_a_download() -> None:
    """With a cache folder, a hub id may be among the files, also under network isolation."""
    assert not find(VLLM, {"SM_VLLM_MODEL": ID, "HF_HUB_CACHE": "/opt/ml/model"}, **ISOLATED)


def test_model_data_wins_over_the_fallback_of_vllm() -> None:
    """HF_MODEL_ID is used only without files, so network isolation matters only then."""
    assert not find(VLLM, {"HF_MODEL_ID": ID}, **ISOLATED)
    assert [each.code for each in find(VLLM, {"HF_MODEL_ID": ID}, is_isolated=True)] == [
        "container-hub-model"
    ]


@pytest.mark.parametrize("name", ["SM_VLLM_TENSOR_PARALLEL", "SM_VLLM_MAX_MODEL"])
def test_beginning_of_a_name_is_accepted(name: str) -> None:
    """The server completes abbreviations, so they are not reported, and not counted either."""
    assert not find(VLLM, {**MODEL[VLLM], name: "4"}, gpus=4 if "TENSOR" in name else 1)


def test_tokens_are_skipped(stack: cdk.Stack) -> None:
    """Values, tags, accounts and numbers of GPUs that are known at deployment are not checked."""
    token = ssm.StringParameter.value_for_string_parameter(stack, "/chat/value")
    names = (
        "MODEL",
        "PORT",
        "HOST",
        "TENSOR_PARALLEL_SIZE",
        "ENABLE_PREFIX_CACHING",
        "ENABLE_LORA",
    )
    environment = {f"SM_VLLM_{name}": token for name in names}
    environment["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "true"
    assert not find(VLLM, environment, is_isolated=True)
    assert not find(f"{AWS}/djl-inference:{token}", {"OPTION_TENSOR_PARALLEL_SIZE": "2"})
    number = cdk.Token.as_number(
        ssm.StringParameter.value_for_string_parameter(stack, "/chat/gpus")
    )
    assert not find(VLLM, {**MODEL[VLLM], "SM_VLLM_TENSOR_PARALLEL_SIZE": "8"}, gpus=number)
    images = ecr.Repository.from_repository_name(stack, "Images", token)
    assert not find(ServingImage.from_ecr_repository(images, "1"), {})


def test_repository_of_aws_is_recognized_as_a_construct(stack: cdk.Stack) -> None:
    """The account of an imported repository is that of AWS's images, and its domain is a token."""
    arn = "arn:aws:ecr:eu-west-1:763104351884:repository/vllm"
    repository = ecr.Repository.from_repository_arn(stack, "Images", arn)
    found = find(ServingImage.from_ecr_repository(repository, "0.30.0-sagemaker"), {})
    assert described(found) == ['error container-no-model environment["SM_VLLM_MODEL"]']


@pytest.mark.parametrize(
    "tag",
    [
        "vllm:0.20.2-gpu-py312-cu130-ubuntu22.04-ec2",
        "sglang:server-cuda-v1",
        "llama-cpp:server-cpu-v1",
    ],
)
def test_image_for_ec2_is_an_error(tag: str) -> None:
    """AWS publishes images for EC2 in the same repositories,
    which do not listen where SageMaker calls.
    """
    assert "error container-image-for-ec2 image" in described(
        find(f"{AWS}/{tag}", {}, has_model_data=True)
    )


def test_names_of_the_table_are_complete() -> None:
    """Each variable of vLLM that the table names is an argument that a check knows,
    so none is reported.
    """
    row = next(each for each in load("containers")["kinds"] if each["name"] == "vLLM")
    named = {name for names in (row["model"], row["hub"], *row["parallel"]) for name in names}
    named |= {each["variable"] for each in row["values"]} | {*row["unused_unless"], *row["unsure"]}
    arguments = {
        name.removeprefix("SM_VLLM_").lower() for name in named if name.startswith("SM_VLLM_")
    }
    assert arguments <= engine_arguments() | {*row["other_names"]}


def test_component_raises_errors_and_annotates_warnings(stack: cdk.Stack) -> None:
    """All errors are raised at once, and the stack is as before;
    the corrected component has its warnings.
    """
    endpoint = add_endpoint(stack, enable_network_isolation=True)
    weights = s3.Bucket.from_bucket_name(stack, "Weights", "weights")
    options: dict[str, Any] = {
        "endpoint": endpoint,
        "image": ServingImage.from_registry(VLLM, cuda_version="13.0"),
        "model_data": ModelSource.from_s3_prefix(weights, "qwen/"),
        "min_memory": cdk.Size.gibibytes(8),
        "number_of_accelerator_devices": 2,
    }
    wrong = {"SM_VLLM_MODEL": ID, "SM_VLLM_PORT": "9000", "SM_VLLM_TENSOR_PARALLEL_SIZE": "4"}
    with pytest.raises(InvalidValueError) as raised:
        ContainerInferenceComponent(stack, "Chat", environment=wrong, **options)
    assert len(str(raised.value).splitlines()) == 3
    ContainerInferenceComponent(
        stack, "Chat", environment={"SM_VLLM_MAX_MODEL_LEN": "8192"}, **options
    )
    assert "constructs-triton:container-unused-gpus" in warnings_of(stack)
