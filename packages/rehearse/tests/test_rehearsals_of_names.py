"""Rehearsals of names that exist: those of the template,
and those of what a service has created.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from shared_endpoint import Resources
from small_assembly import codes, endpoint, of_code, rehearsal

from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import Request, StackVersion, Version
from constructs_triton_core.cloud_assembly.template import Template

GROUP = {
    "Type": "AWS::Logs::LogGroup",
    "Properties": {"LogGroupName": "/aws/sagemaker/Endpoints/digits"},
}


def _in_region(region: str, *versions: Resources) -> Rehearsal:
    old, new = (
        Version((StackVersion("S", Template({"Resources": each}), region=region),))
        for each in versions
    )
    return simulate(Request(old, new, {}, "none", 1))


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1"])
def test_a_bucket_that_moves_is_reported_in_each_region(region: str) -> None:
    """S3 in us-east-1 creates a bucket twice without an error, CloudFormation in no Region."""
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "acme-models"}}
    found = _in_region(region, {"A": bucket}, {"B": bucket})
    (problem,) = of_code(found.problems, "rehearse-name-collision")
    assert "keep the construct ID" in problem.hint


def test_the_names_of_endpoints_differ_by_more_than_case(tmp_path: Path) -> None:
    """``Digits`` and ``digits`` are one endpoint for SageMaker."""
    old, new = endpoint(), endpoint(name="Digits")
    new["Other"] = new.pop("Endpoint")
    assert "rehearse-name-collision" in codes(rehearsal(tmp_path, old, new))


def _logged(*, denied: bool = False) -> Resources:
    resources = endpoint()
    statements = resources["Policy"]["Properties"]["PolicyDocument"]["Statement"]
    statements.append({"Effect": "Allow", "Action": "logs:*", "Resource": "*"})
    if denied:
        statements.append({"Effect": "Deny", "Action": "logs:CreateLogGroup", "Resource": "*"})
    return resources


GROUP = {
    "Type": "AWS::Logs::LogGroup",
    "Properties": {"LogGroupName": "/aws/sagemaker/Endpoints/digits"},
}


def test_the_log_group_of_an_endpoint_in_service_exists(tmp_path: Path) -> None:
    """SageMaker has created it, so a log group of the template fails;
    not if the role may not create it.
    """
    found = rehearsal(tmp_path, _logged(), {**_logged(), "Logs": GROUP})
    (problem,) = of_code(found.problems, "rehearse-name-collision")
    assert "put-retention-policy" in problem.hint
    assert (
        codes(rehearsal(tmp_path, _logged(denied=True), {**_logged(denied=True), "Logs": GROUP}))
        == set()
    )
    assert "rehearse-name-collision" not in codes(
        rehearsal(tmp_path, None, {**_logged(), "Logs": GROUP})
    )
