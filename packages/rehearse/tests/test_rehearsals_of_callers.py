"""What a rehearsal says about callers: how they call, and what their calls name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shared_endpoint import IMAGE, ROLE, Resources, model, shared
from small_assembly import BUCKET, codes, endpoint, rehearsal

from constructs_triton_core.findings import Severity

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

ASYNC = {"OutputConfig": {"S3OutputPath": f"s3://{BUCKET}/answers/"}}


def _asynchronous() -> Resources:
    """An asynchronous endpoint, whose role may write the responses."""
    resources = endpoint()
    resources["Config"]["Properties"]["AsyncInferenceConfig"] = ASYNC
    resources["Policy"]["Properties"]["PolicyDocument"]["Statement"].append(
        {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"}
    )
    return resources


def test_callers_fail_if_an_endpoint_changes_how_it_is_called(tmp_path: Path) -> None:
    """An endpoint that stops being asynchronous, or becomes so,
    is an error that names both operations.
    """
    for old, new, works in (
        (_asynchronous(), endpoint(), "InvokeEndpoint"),
        (endpoint(), _asynchronous(), "InvokeEndpointAsync"),
    ):
        found = rehearsal(tmp_path, old, new)
        (line,) = found.callers
        assert line.endswith(f"callers must use {works}")
        assert [problem.code for problem in found.errors] == ["rehearse-callers-fail"]


def _variants(*names: str) -> Resources:
    """An endpoint with variants of these names, which differ in nothing else."""
    resources = endpoint()
    (variant,) = resources["Config"]["Properties"]["ProductionVariants"]
    resources["Config"]["Properties"]["ProductionVariants"] = [
        {**variant, "VariantName": name} for name in names
    ]
    return resources


def test_a_removed_variant_is_a_line_only(tmp_path: Path) -> None:
    """Calls that name no variant work with each, so that the end of an A/B test is no problem."""
    found = rehearsal(tmp_path, _variants("blue", "green"), _variants("green"))
    assert found.callers == ('endpoint digits no longer has variant "blue"',)
    assert codes(found) == set()
    renamed = rehearsal(tmp_path, _variants("blue"), _variants("green"))
    assert renamed.callers == (
        'endpoint digits no longer has variant "blue"',
        'endpoint digits has the new variant "green"',
    )
    assert codes(renamed) == set()


def _several_containers(*containers: dict[str, Any]) -> Resources:
    """An endpoint whose callers name one of its containers."""
    resources = endpoint()
    resources["Model"] = {**model(), "Properties": {**model()["Properties"]}}
    properties = resources["Model"]["Properties"]
    image = properties.pop("PrimaryContainer")["Image"]
    common = {"Image": image, "ModelDataUrl": f"s3://{BUCKET}/one.tar.gz"}
    properties["Containers"] = [{**common, **container} for container in containers]
    properties["InferenceExecutionConfig"] = {"Mode": "Direct"}
    return resources


def _multi_model() -> Resources:
    """A multi-model endpoint of the archives that each assembly has as assets."""
    resources = endpoint()
    container = {"Image": IMAGE, "Mode": "MultiModel", "ModelDataUrl": f"s3://{BUCKET}/"}
    resources["Model"] = {
        **model(),
        "Properties": {"ExecutionRoleArn": ROLE, "PrimaryContainer": container},
    }
    resources["Policy"]["Properties"]["PolicyDocument"]["Statement"].append(
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}
    )
    return resources


def test_a_multi_model_container_without_archives_has_no_models(tmp_path: Path) -> None:
    """A container without ModelDataUrl ends no rehearsal;
    its callers can name no model any more.
    """
    new = _multi_model()
    del new["Model"]["Properties"]["PrimaryContainer"]["ModelDataUrl"]
    found = rehearsal(tmp_path, _multi_model(), new)
    assert codes(found) == {"rehearse-callers-fail"}


def test_models_of_a_bucket_that_no_stack_creates_are_not_known(tmp_path: Path) -> None:
    """A multi-model endpoint may read a bucket outside the stacks;
    nothing is said of its models.
    """
    placed = _multi_model()
    outside = _multi_model()
    outside["Model"]["Properties"]["PrimaryContainer"]["ModelDataUrl"] = "s3://outside/models/"
    assert rehearsal(tmp_path, outside, outside).callers == ()
    (line,) = rehearsal(tmp_path, outside, placed).callers
    assert line == 'endpoint digits has the new model "one.tar.gz" and "two.tar.gz"'
    found = rehearsal(tmp_path, placed, outside)
    assert found.callers == ('endpoint digits no longer has model "one.tar.gz" and "two.tar.gz"',)
    assert "rehearse-callers-fail" in codes(found)


def test_a_removed_container_of_direct_invocation_is_a_warning(tmp_path: Path) -> None:
    """Callers name the host name of a container."""
    first = {"ContainerHostname": "ocr"}
    second = {"ContainerHostname": "faces"}
    found = rehearsal(tmp_path, _several_containers(first, second), _several_containers(first))
    assert 'endpoint digits no longer has container "faces"' in found.callers
    assert codes(found) == {"rehearse-callers-fail"}


@pytest.mark.parametrize("name", ["ocr", ""])
def test_a_removed_component_is_a_warning(name: str, tmp_path: Path) -> None:
    """Every call to a component names it, also if CloudFormation has generated the name."""
    old = shared()
    if name:
        old["One"]["Properties"]["InferenceComponentName"] = name
    new = {name: old[name] for name in old if name != "One"}
    found = rehearsal(tmp_path, old, new)
    (line,) = found.callers
    assert "no longer has inference component" in line
    assert [problem.severity for problem in found.problems] == [Severity.WARNING]


def test_a_stack_without_endpoints_has_no_callers(tmp_path: Path) -> None:
    """Nothing is said of endpoints, models and Triton about an app that has none."""
    topic: Resources = {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "a"}}}
    other: Resources = {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "b"}}}
    found = rehearsal(tmp_path, topic, other, failures="each")
    assert found.callers == ()
    assert found.not_simulated == ("the time that steps take",)
