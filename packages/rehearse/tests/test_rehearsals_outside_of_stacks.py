"""Rehearsals of stacks that use what exists before: buckets, roles, keys, networks,
values of parameters.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_assembly import codes, endpoint, of_code, rehearsal, write_assembly

from cdk_rehearse import rehearse
from constructs_triton_core.errors import InvalidValueError

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

ROLE = "arn:aws:iam::123456789012:role/team/serving"
KEY = "arn:aws:kms:us-east-1:123456789012:key/0000aaaa-0000-0000-0000-00000000aaaa"


def outside(*, readable: str = "*", role: str = "") -> dict[str, Any]:
    """An endpoint whose model, key and network no stack creates."""
    resources = endpoint()
    statements = resources["Policy"]["Properties"]["PolicyDocument"]["Statement"]
    statements[0]["Resource"] = f"arn:aws:s3:::platform/{readable}"
    statements.append({"Effect": "Allow", "Action": "ec2:*", "Resource": "*"})
    model, config = (resources[name]["Properties"] for name in ("Model", "Config"))
    model["PrimaryContainer"]["ModelDataUrl"] = "s3://platform/one.tar.gz"
    model["VpcConfig"] = {
        "Subnets": ["subnet-0123456789abcdef0"],
        "SecurityGroupIds": ["sg-0123456789abcdef0"],
    }
    config["KmsKeyId"] = KEY
    if role:
        model["ExecutionRoleArn"] = role
        resources["Policy"]["Properties"]["Roles"] = [role.rpartition("/")[2]]
    return resources


def test_existing_resources_are_assumed_and_named(tmp_path: Path) -> None:
    """The model is there; a role that loses its statement may still read it by the bucket's
    policy.
    """
    found = rehearsal(tmp_path, outside(), outside(readable="two.tar.gz"))
    assert codes(found) == {"rehearse-reader-loses-access"}
    assert list(found.errors) == []
    assert [note for note in found.not_simulated if note.startswith("existing")] == [
        "existing KMS key 0000aaaa-0000-0000-0000-00000000aaaa",
        "existing bucket platform",
        "existing security group sg-0123456789abcdef0",
        "existing subnet subnet-0123456789abcdef0",
    ]


OWN_IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/triton:1"
OTHERS_IMAGE = "210987654321.dkr.ecr.us-east-1.amazonaws.com/triton:1"


def pulling(image: str, effect: str = "Allow") -> dict[str, Any]:
    """An endpoint whose role has a statement about no repository but its own."""
    resources = outside()
    resources["Model"]["Properties"]["PrimaryContainer"]["Image"] = image
    statements = resources["Policy"]["Properties"]["PolicyDocument"]["Statement"]
    repository = "arn:aws:ecr:us-east-1:123456789012:repository/other"
    token = {"Effect": "Allow", "Action": "ecr:GetAuthorizationToken", "Resource": "*"}
    target = repository if effect == "Allow" else "*"
    pull = {"Effect": effect, "Action": "ecr:Batch*", "Resource": target}
    others = [statement for statement in statements if "ecr" not in json.dumps(statement)]
    resources["Policy"]["Properties"]["PolicyDocument"]["Statement"] = [*others, token, pull]
    return resources


@pytest.mark.parametrize(
    ("resources", "code", "is_error"),
    [
        (outside(readable="two.tar.gz"), "rehearse-update-may-fail", False),
        (pulling(OWN_IMAGE), "rehearse-update-may-fail", False),
        # Between accounts, the role needs a statement of its own; a Deny decides alone.
        (pulling(OTHERS_IMAGE), "rehearse-update-fails", True),
        (pulling(OWN_IMAGE, "Deny"), "rehearse-update-fails", True),
    ],
)
def test_policy_of_a_resource_outside_may_allow_a_role(
    tmp_path: Path, resources: dict[str, Any], code: str, is_error: bool
) -> None:
    """In one account, either policy suffices, and that of an existing resource is not known."""
    found = rehearsal(tmp_path, None, resources)
    assert codes(found) == {code}
    assert bool(found.errors) is is_error


def uploaded(*, instances: int = 1) -> dict[str, Any]:
    """An endpoint whose model a person uploads to a bucket of the stack."""
    resources = endpoint()
    resources["Models"] = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "uploads"}}
    statements = resources["Policy"]["Properties"]["PolicyDocument"]["Statement"]
    statements[0]["Resource"] = "arn:aws:s3:::uploads/*"
    container = resources["Model"]["Properties"]["PrimaryContainer"]
    container["ModelDataUrl"] = "s3://uploads/one.tar.gz"
    resources["Model"].setdefault("DependsOn", []).append("Models")
    variants = resources["Config"]["Properties"]["ProductionVariants"]
    variants[0]["InitialInstanceCount"] = instances
    return resources


def test_deployed_version_has_the_objects_that_it_needs(tmp_path: Path) -> None:
    """What a person has uploaded to a bucket of OLD is there; a bucket that is new is empty."""
    found = rehearsal(tmp_path, uploaded(), uploaded(instances=2))
    assert codes(found) == set()
    assert found.status == {"S": "UPDATE_COMPLETE"}

    first = rehearsal(tmp_path, None, uploaded())
    assert codes(first) == {"rehearse-update-fails"}
    assert "Could not access model data at s3://uploads/one.tar.gz: 404" in first.reason


def test_existing_role_makes_no_statement_about_readers(tmp_path: Path) -> None:
    """Its own policies are not known; those that the stack adds are attached and removed."""
    found = rehearsal(tmp_path, outside(role=ROLE), outside(role=ROLE, readable="nothing"))
    assert codes(found) == set()
    assert found.steps[-1].may_read_new is None
    assert "existing role serving" in found.not_simulated
    assert found.way_back is not None
    assert found.way_back.succeeds


def test_condition_that_is_not_simulated_is_named(tmp_path: Path) -> None:
    """It counts as fulfilled, so the report makes no claim against the policy."""
    new = outside(readable="nothing")
    statements = new["Policy"]["Properties"]["PolicyDocument"]["Statement"]
    until = {"DateLessThan": {"aws:CurrentTime": "2030-01-01T00:00:00Z"}}
    statements.append({"Effect": "Allow", "Action": "s3:*", "Resource": "*", "Condition": until})
    found = rehearsal(tmp_path, outside(), new)
    assert codes(found) == set()
    assert "policies: condition operator DateLessThan is not supported" in found.not_simulated


def test_deleted_bucket_is_not_assumed(tmp_path: Path) -> None:
    """A model in a bucket that the stack had and deletes cannot be read any more."""
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "platform"}}
    found = rehearsal(tmp_path, {"Bucket": bucket, **outside()}, outside())
    assert "rehearse-reader-loses-access" in codes(found)
    (problem,) = of_code(found.problems, "rehearse-reader-loses-access")
    assert "s3://platform/one.tar.gz: NoSuchBucket" in problem.message
    assert "existing bucket platform" not in found.not_simulated


def test_environment_may_be_bootstrapped_with_another_qualifier(tmp_path: Path) -> None:
    """The assets are published to the bucket that the assembly names."""
    folders = [
        write_assembly(tmp_path / name, endpoint(archive="one.tar.gz")) for name in ("old", "new")
    ]
    for folder in folders:
        for path in folder.glob("*.json"):
            path.write_text(path.read_text().replace("hnb659fds", "platform"))
        template = json.loads((folder / "S.template.json").read_text())
        version = {
            "Type": "AWS::SSM::Parameter::Value<String>",
            "Default": "/cdk-bootstrap/platform/version",
        }
        template["Parameters"] = {"BootstrapVersion": version}
        (folder / "S.template.json").write_text(json.dumps(template))
    found = rehearse(*folders, failures="none", orders=1)
    assert found.status == {"S": "UPDATE_COMPLETE"}
    assert found.steps == ()


def with_parameters(path: Path, prefix: str) -> Path:
    """A template whose parameter ``Stage`` has no default."""
    topic = {
        "Type": "AWS::SNS::Topic",
        "Properties": {"TopicName": {"Fn::Sub": prefix + "-${Stage}-${Size}"}},
    }
    parameters = {"Stage": {"Type": "String"}, "Size": {"Type": "Number", "Default": 3}}
    path.write_text(json.dumps({"Parameters": parameters, "Resources": {"Topic": topic}}))
    return path


def test_parameters_have_values_or_the_error_says_what_to_give(tmp_path: Path) -> None:
    """Both versions get the values; an unknown name is an error too."""
    old, new = (with_parameters(tmp_path / f"{name}.json", name) for name in ("old", "new"))
    with pytest.raises(
        InvalidValueError, match=r"parameter Stage has no default.*--parameters Stage=VALUE"
    ):
        rehearse(old, new, failures="none")
    with pytest.raises(InvalidValueError, match="'Wide': neither version has it"):
        rehearse(old, new, failures="none", parameters={"Stage": "live", "Wide": "4"})
    found = rehearse(old, new, failures="none", orders=1, parameters={"Stage": "live"})
    assert found.replaced == ("Topic",)


def scaled(resource_id: str, dimension: str) -> dict[str, Any]:
    """A scalable target and its policy."""
    key = {
        "ResourceId": resource_id,
        "ScalableDimension": f"sagemaker:{dimension}",
        "ServiceNamespace": "sagemaker",
    }
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    tracking = {"TargetValue": 1, "PredefinedMetricSpecification": metric}
    policy = {"PolicyName": "p", "PolicyType": "TargetTrackingScaling", **key}
    kind = "AWS::ApplicationAutoScaling"
    return {
        "Target": {
            "Type": f"{kind}::ScalableTarget",
            "Properties": {"MinCapacity": 1, "MaxCapacity": 2, **key},
        },
        "Scaling": {
            "Type": f"{kind}::ScalingPolicy",
            "Properties": {**policy, "TargetTrackingScalingPolicyConfiguration": tracking},
        },
    }


@pytest.mark.parametrize(
    "resources",
    [
        scaled("endpoint/others/variant/AllTraffic", "variant:DesiredInstanceCount"),
        scaled("inference-component/others", "inference-component:DesiredCopyCount"),
        {"Scaling": scaled("endpoint/others/variant/A", "variant:DesiredInstanceCount")["Scaling"]},
        {
            "Endpoint": {
                "Type": "AWS::SageMaker::Endpoint",
                "Properties": {"EndpointConfigName": "others"},
            }
        },
    ],
)
def test_endpoint_of_another_stack_is_no_error(tmp_path: Path, resources: dict[str, Any]) -> None:
    """What no stack of the rehearsal has created may exist; what uses it is not simulated."""
    found = rehearsal(tmp_path, None, resources)
    assert codes(found) == set()
    assert any("AWS::" in note for note in found.not_simulated)
