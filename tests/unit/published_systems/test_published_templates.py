"""The templates of the published systems, compared with the boto3 calls of the articles."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from article_calls import Difference, article_calls, differences, explained, template_calls
from published_examples import EXAMPLES, templates
from syrupy.assertion import SnapshotAssertion

from constructs_triton.testing import TritonTemplateExtension
from constructs_triton_tools.cli import simulate

STACKS = [
    ("dali_inception", "DaliInception"),
    ("dali_inception", "DaliInceptionOnnx"),
    ("dali_inception", "DaliInceptionTensorrt"),
    ("dali_inception", "DaliInceptionTwin"),
    ("bert_benchmark", "Bert"),
    ("bert_benchmark", "SmallBert"),
    ("resnet_autoscaling", "ResNet50"),
    ("resnet_autoscaling", "SmallNetwork"),
]

METRICS = {
    "LoadedModelCount",
    "GPUUtilization",
    "GPUMemoryUtilization",
    "DiskUtilization",
    "CPUUtilization",
    "MemoryUtilization",
    "ModelLoadingWaitTime",
    "ModelUnloadingTime",
    "ModelDownloadingTime",
    "ModelCacheHit",
    "ModelLatency",
    "OverheadLatency",
    "Invocation4XXErrors",
    "Invocation5XXErrors",
}

pytestmark = pytest.mark.xdist_group("examples")


@pytest.mark.parametrize(("example", "stack"), STACKS, ids=[stack for _, stack in STACKS])
def test_serving_part_of_the_template(
    example: str, stack: str, snapshot: SnapshotAssertion
) -> None:
    """The resources of SageMaker and Application Auto Scaling match the snapshot."""
    kinds = ("AWS::SageMaker::", "AWS::ApplicationAutoScaling::")
    resources = templates(example)[stack]["Resources"]
    part = {name: each for name, each in resources.items() if each["Type"].startswith(kinds)}
    assert part == snapshot(extension_class=TritonTemplateExtension)


@pytest.mark.parametrize(
    ("example", "stack"), [("dali_inception", "DaliInception"), ("resnet_autoscaling", "ResNet50")]
)
def test_every_difference_from_the_article_is_explained(example: str, stack: str) -> None:
    """Each parameter of the article's calls is in the template,
    or the README's table has the reason.
    """
    found = differences(
        article_calls(EXAMPLES / example), template_calls(templates(example)[stack])
    )
    assert found == explained(EXAMPLES / example / "README.md")


def test_a_parameter_that_differs_is_found() -> None:
    """A different value, a missing one and an additional one are differences;
    a placeholder is any string.
    """
    article = {"create_model": {"ModelName": "<NAME>", "Mode": "MultiModel", "Image": "<IMAGE>"}}
    ours = {
        "create_model": {"Mode": "SingleModel", "Image": {"Ref": "Uri"}, "Extra": [{"Key": True}]}
    }
    assert differences(article, ours) == {
        Difference("create_model", "ModelName", "<NAME>", "-"),
        Difference("create_model", "Mode", "MultiModel", "SingleModel"),
        Difference("create_model", "Extra[0].Key", "-", "true"),
    }


def test_small_network_differs_from_resnet50_by_its_models_alone() -> None:
    """The stack for local runs differs from ResNet50 only in names and in the
    content of the models.
    """
    stacks = templates("resnet_autoscaling")
    calls = [template_calls(stacks[name]) for name in ("ResNet50", "SmallNetwork")]
    names = [call["create_endpoint"].pop("EndpointName") for call in calls]
    assert names == ["resnet-mme-gpu", "small-network"]
    assert calls[0] == calls[1]


def test_dashboard_shows_the_metrics_of_the_article() -> None:
    """The dashboard has all metrics of instances,
    model loading and latency that the article names.
    """
    resources = templates("resnet_autoscaling")["ResNet50"]["Resources"].values()
    (body,) = [
        each["Properties"]["DashboardBody"]
        for each in resources
        if each["Type"] == "AWS::CloudWatch::Dashboard"
    ]
    text = "".join(part for part in body["Fn::Join"][1] if isinstance(part, str))
    assert {name for name in METRICS if f'"{name}"' in text} == METRICS


def test_simulation_follows_the_articles_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`simulate` reads bounds, target and cooldowns from the template:
    at 60 percent it adds instances.
    """
    template = tmp_path / "ResNet50.template.json"
    template.write_text(json.dumps(templates("resnet_autoscaling")["ResNet50"]))
    words = [
        "--pattern",
        "step",
        "--low",
        "200",
        "--high",
        "2000",
        "--throughput",
        "1200",
        "--json",
    ]
    parser = argparse.ArgumentParser()
    simulate.add_arguments(parser)
    assert simulate.run(parser.parse_args(["--template", str(template), *words])) == 0
    timeline = json.loads(capsys.readouterr().out)["timeline"]
    # 2,000 of 1,200 requests per minute are 56 percent of three instances, and 83 percent of two.
    assert timeline[0]["desired"] == 1
    assert max(minute["desired"] for minute in timeline) == 3
