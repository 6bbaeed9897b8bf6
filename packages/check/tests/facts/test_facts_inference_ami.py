"""The inference AMI: set for pairs with a source, otherwise not set, with a warning."""

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType, instance_type_names
from triton_model_check.facts.inference_ami import (
    InferenceAmi,
    default_inference_ami,
    inference_ami_names,
)
from triton_model_check.facts.published import load

GPU_4_1, GPU_3_1 = "al2023-ami-sagemaker-inference-gpu-4-1", "al2-ami-sagemaker-inference-gpu-3-1"
ROWS = [(family, row) for row in load("inference_ami")["defaults"] for family in row["families"]]


def _member(family: str) -> InstanceType:
    return InstanceType.of(
        next(name for name in instance_type_names() if name.split(".")[1] == family)
    )


@pytest.mark.parametrize(
    ("family", "row"), ROWS, ids=[f"{family}-{row['since']}" for family, row in ROWS]
)
def test_each_pair_with_a_source_has_its_default(family: str, row: dict[str, str]) -> None:
    """For a row's releases its AMI is the default, without a warning; for later ones it is not."""
    choice = default_inference_ami(row["since"], _member(family))
    assert (choice.ami.version if choice.ami else None, choice.certainty) == (
        row["ami"],
        row["certainty"],
    )
    assert (choice.finding, bool(choice.source)) == (None, True)
    if row["before"]:
        after = default_inference_ami(row["before"], _member(family))
        assert (after.ami.version if after.ami else None) != row["ami"]


@pytest.mark.parametrize(
    ("image_version", "instance_type", "ami"),
    [
        ("24.09", "ml.g5.xlarge", None),
        ("25.04", "ml.g5.xlarge", GPU_3_1),
        ("25.09", "ml.g5.xlarge", GPU_4_1),
        ("26.05", "ml.g4dn.xlarge", GPU_4_1),
    ],
)
def test_default_follows_the_cuda_of_the_image(
    image_version: str, instance_type: str, ami: str | None
) -> None:
    """CUDA 12.4 and older run on SageMaker's default AMI, 12.9 needs driver 550,
    13 needs driver 580.
    """
    choice = default_inference_ami(image_version, InstanceType.of(instance_type))
    assert (choice.ami.version if choice.ami else None) == ami


@pytest.mark.parametrize(
    ("image", "instance_type"),
    [
        ("26.05", "ml.g7.2xlarge"),
        ("25.04", "ml.g6.xlarge"),
        ("26.05", "ml.g9.xlarge"),
        (None, "ml.g5.xlarge"),
    ],
)
def test_pair_without_a_source_is_not_set_and_gives_a_warning(
    image: str | None, instance_type: str
) -> None:
    """Without a published source, nothing is guessed."""
    choice = default_inference_ami(image, InstanceType.of(instance_type))
    assert (choice.ami, choice.certainty) == (None, None)
    assert choice.finding is not None
    assert (choice.finding.code, choice.finding.severity) == ("inference-ami-unsourced", "warning")
    assert instance_type in choice.finding.message


def test_cpu_instances_need_no_ami() -> None:
    """Without a GPU there is no driver: nothing is set, and there is no warning."""
    choice = default_inference_ami("26.05", InstanceType.of("ml.m5.large"))
    assert (choice.ami, choice.finding) == (None, None)


def test_unknown_names_must_have_the_form_of_known_ones() -> None:
    """A known name has its driver, a newer one and a token are accepted,
    a misspelling is an error.
    """
    assert InferenceAmi.of(GPU_4_1).driver == "580"
    assert not InferenceAmi.of("al2023-ami-sagemaker-inference-gpu-5-1").is_known
    assert not InferenceAmi.of("${Token[TOKEN.1]}").is_known
    with pytest.raises(InvalidValueError, match=f'did you mean "{GPU_3_1}"'):
        InferenceAmi.of("al2-ami-sagemaker-inference_gpu-3-1")


def test_names_are_in_the_service_model() -> None:
    """Every name of the table is in the installed botocore."""
    import botocore.session

    loader = botocore.session.Session().get_component("data_loader")
    shapes = loader.load_service_model("sagemaker", "service-2")["shapes"]
    assert set(inference_ami_names()) <= set(shapes["ProductionVariantInferenceAmiVersion"]["enum"])
