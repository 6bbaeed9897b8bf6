"""Events between OLD and NEW that a user names: what each does to an update."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from shared_endpoint import IMAGE, Resources, component, policy, shared, trust
from small_assembly import BUCKET, codes, endpoint, of_code, rehearsal, write_assembly

from cdk_rehearse import construct_libraries, rehearse
from cdk_rehearse.construct_libraries import _digest
from constructs_triton_core.errors import InvalidValueError

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

NEW = endpoint(archive="two.tar.gz")
LOG_GROUP = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/mine"}}


def encrypted(archive: str = "one.tar.gz") -> Resources:
    """An endpoint whose role may use a key, under which it writes captured data."""
    resources = endpoint(archive=archive)
    statement = {"Effect": "Allow", "Action": "kms:*", "Resource": "*"}
    resources["Policy"]["Properties"]["PolicyDocument"]["Statement"].append(statement)
    root = {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}
    policy = {"Version": "2012-10-17", "Statement": [{**statement, "Principal": {"AWS": root}}]}
    key = {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": policy}}
    resources["Config"]["Properties"]["KmsKeyId"] = {"Fn::GetAtt": ["Key", "Arn"]}
    return {"Key": key, **resources}


def test_log_group_that_exists_is_in_the_way_of_the_update(tmp_path: Path) -> None:
    """A log group that AWS or a person created has the name that NEW needs."""
    found = rehearsal(
        tmp_path, endpoint(), {**endpoint(), "Group": LOG_GROUP}, meanwhile=("log-group=/mine",)
    )
    assert codes(found) == {"rehearse-name-collision"}
    assert found.meanwhile == ("log group /mine exists",)
    assert codes(rehearsal(tmp_path, endpoint(), {**endpoint(), "Group": LOG_GROUP})) == set()


def test_fleet_that_was_scaled_is_made_smaller(tmp_path: Path) -> None:
    """The event sets the instances as ``fleets`` does."""
    versions = [
        write_assembly(tmp_path / name, each) for name, each in (("old", endpoint()), ("new", NEW))
    ]
    found = rehearse(*versions, meanwhile=["fleet=digits:4"], failures="none", orders=1)
    assert codes(found) == {"rehearse-fleet-shrinks"}
    assert found.instances[0].before == 4
    assert found.meanwhile == ("endpoint digits runs 4 instances",)


def test_key_that_is_disabled_encrypts_no_volume(tmp_path: Path) -> None:
    """The loss begins with the event, and the fix is to undo it."""
    (problem,) = rehearsal(
        tmp_path, encrypted(), encrypted("two.tar.gz"), meanwhile=("key-disabled=Key",)
    ).errors
    assert problem.code == "rehearse-data-loses-access"
    assert problem.message.startswith(
        "after key Key is disabled, role Role may not encrypt storage volumes"
    )
    assert "undo this" in problem.hint


@pytest.mark.parametrize("subject", ["sagemaker-tritonserver", IMAGE, IMAGE.partition("/")[2]])
def test_image_that_is_deleted_starts_no_instance(tmp_path: Path, subject: str) -> None:
    """An image or its repository can be named; neither the old nor the new
    version can start with it.
    """
    found = rehearsal(tmp_path, endpoint(), NEW, meanwhile=(f"image-deleted={subject}",))
    assert codes(found) == {"rehearse-reader-loses-access", "rehearse-update-fails"}
    assert f"Requested image {IMAGE} not found." in found.reason


def denied_later() -> Resources:
    """An endpoint, and a bucket policy after it with which no further instance
    can read its model.
    """
    statement = {
        "Effect": "Deny",
        "Action": "s3:GetObject",
        "Principal": "*",
        "Resource": f"arn:aws:s3:::{BUCKET}/*",
    }
    properties = {
        "Bucket": BUCKET,
        "PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]},
    }
    denied = {"Type": "AWS::S3::BucketPolicy", "Properties": properties, "DependsOn": ["Endpoint"]}
    return {**endpoint(), "Denied": denied}


def test_host_that_is_replaced_shows_what_old_cannot_read(tmp_path: Path) -> None:
    """What was wrong before the update is not a problem of it, until an instance has to start."""
    assert codes(rehearsal(tmp_path, denied_later(), denied_later())) == set()
    found = rehearsal(
        tmp_path, denied_later(), denied_later(), meanwhile=("host-replaced=Endpoint",)
    )
    (problem,) = found.problems
    assert problem.message.startswith(
        "after a host of endpoint digits is replaced, a new instance cannot start"
    )


def pooled(archive: str = "one.tar.gz") -> Resources:
    """An endpoint with two instance pools."""
    resources = endpoint(archive=archive)
    (variant,) = resources["Config"]["Properties"]["ProductionVariants"]
    pools = [{"InstanceType": f"ml.g{number}.xlarge", "Priority": number - 4} for number in (5, 6)]
    variant.update(InstancePools=pools)
    del variant["InstanceType"]
    return resources


G5, G6 = "no-capacity=ml.g5.xlarge", "no-capacity=ml.g6.xlarge"


@pytest.mark.parametrize(
    ("old", "new", "events", "fails"),
    [
        (endpoint(), NEW, (G5,), True),
        (None, NEW, (G5,), True),
        (endpoint(), endpoint(instance_type="ml.g6.xlarge"), (G5,), False),
        (pooled(), pooled("two.tar.gz"), (G5,), False),
        (pooled(), pooled("two.tar.gz"), (G5, G6), True),
    ],
)
def test_no_capacity_fails_what_starts_instances(
    tmp_path: Path, old: Resources | None, new: Resources, events: tuple[str, ...], fails: bool
) -> None:
    """Instances of another type start, and one pool with capacity is enough."""
    found = rehearsal(tmp_path, old, new, meanwhile=events)
    assert codes(found) == ({"rehearse-update-fails"} if fails else set())
    assert ("InsufficientInstanceCapacity" in found.reason) == fails


def test_no_capacity_for_the_copies_of_a_component(tmp_path: Path) -> None:
    """A component that needs another instance cannot be created."""
    new = shared(2, Two=component("Model", accelerators=4))
    found = rehearsal(tmp_path, shared(2), new, meanwhile=("no-capacity=ml.g5.12xlarge",))
    assert codes(found) == {"rehearse-update-fails"}
    assert codes(rehearsal(tmp_path, shared(2), new)) == set()


def test_capacity_that_is_gone_keeps_the_rollback_from_its_end(tmp_path: Path) -> None:
    """The old version needs instances of its own type to come back."""
    topic = {"Type": "AWS::SNS::Topic", "DependsOn": ["Endpoint"]}
    new = {**endpoint(instance_type="ml.g6.xlarge"), "Topic": topic}
    found = rehearsal(tmp_path, endpoint(), new, meanwhile=(G5,), failures="each")
    assert "rehearse-rollback-fails" in codes(found)


def beside() -> Resources:
    """Another endpoint, with one instance."""
    text = json.dumps(endpoint(name="beside"))
    resources: Resources = json.loads(
        re.sub(r'"(Role|Policy|Model|Config|Endpoint)"', r'"Other\1"', text)
    )
    return resources


@pytest.mark.parametrize(("quota", "fails"), [(6, False), (5, True)])
def test_quota_counts_all_endpoints_and_the_new_fleet(
    tmp_path: Path, quota: int, fails: bool
) -> None:
    """Four instances and that of another endpoint run, and one of the new fleet starts."""
    old, new = {**endpoint(), **beside()}, {**NEW, **beside()}
    found = rehearsal(tmp_path, old, new, meanwhile=(f"quota=ml.g5.xlarge:{quota}",), digits=4)
    assert ("rehearse-update-fails" in codes(found)) == fails
    utilization = (
        "is 5 Instances, with current utilization of 5 Instances and a request delta of 1 Instances"
    )
    assert (utilization in found.reason) == fails


#: Places a model and an index, and deletes the model a month later. Its failed creation cannot be
#: deleted.
FUNCTION = """
import json, time, urllib.request
import boto3
from botocore.config import Config
s3 = boto3.client("s3", config=Config(s3={"addressing_style": "path"}))
def work(event, bucket):
    if event["RequestType"] == "Create":
        for key, body in (("model.tar.gz", ""), ("index.json", json.dumps(time.time()))):
            s3.put_object(Bucket=bucket, Key=key, Body=body)
    elif event["RequestType"] == "Update":
        placed = json.loads(s3.get_object(Bucket=bucket, Key="index.json")["Body"].read())
        if time.time() - placed > 30 * 86400:
            s3.delete_object(Bucket=bucket, Key="model.tar.gz")
    elif event["PhysicalResourceId"] != "failed":
        for key in ("model.tar.gz", "index.json"):
            s3.delete_object(Bucket=bucket, Key=key)
def handler(event, context):
    answer = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    answer |= {"Status": "SUCCESS", "PhysicalResourceId": event.get("PhysicalResourceId", "placed")}
    try:
        work(event, event["ResourceProperties"]["Bucket"])
    except Exception as error:
        failed = event.get("PhysicalResourceId", "failed")
        answer |= {"Status": "FAILED", "Reason": repr(error), "PhysicalResourceId": failed}
    body = json.dumps(answer).encode()
    request = urllib.request.Request(event["ResponseURL"], body, method="PUT")
    urllib.request.urlopen(request, timeout=10)
"""


@pytest.fixture
def placing(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The code of a construct library's function."""
    content = FUNCTION.encode()
    monkeypatch.setattr(
        construct_libraries, "_handlers", lambda: {_digest([("f.py", content)]): "f.handler"}
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("f.py", content)
    return buffer.getvalue()


def placed(version: int = 1, **bucket: Any) -> Resources:
    """An endpoint of the model that a function has placed in a bucket of the stack."""
    everything = policy(("s3:*", "*"), ("ecr:*", "*"), ("logs:*", "*"))
    everything["Properties"]["Roles"].append({"Ref": "FunctionRole"})
    function = {
        "Handler": "f.handler",
        "Runtime": "python3.13",
        "Role": {"Fn::GetAtt": ["FunctionRole", "Arn"]},
        "Code": {"S3Bucket": BUCKET, "S3Key": "function.zip"},
    }
    custom = {
        "ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]},
        "Bucket": {"Ref": "Bucket"},
        "Version": version,
    }
    resources = endpoint()
    container = resources["Model"]["Properties"]["PrimaryContainer"]
    container["ModelDataUrl"] = {"Fn::Sub": "s3://${Bucket}/model.tar.gz"}
    resources["Model"]["DependsOn"] = ["Policy", "Placed"]
    return {
        **resources,
        "Policy": everything,
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": bucket},
        "FunctionRole": {
            "Type": "AWS::IAM::Role",
            "Properties": {"AssumeRolePolicyDocument": trust("lambda")},
        },
        "Function": {"Type": "AWS::Lambda::Function", "Properties": function},
        "Placed": {"Type": "Custom::Placed", "Properties": custom, "DependsOn": ["Policy"]},
    }


@pytest.mark.parametrize(("days", "lost"), [(29, False), (31, True)])
def test_function_that_deletes_by_age_sees_the_days_that_passed(
    tmp_path: Path, placing: bytes, days: int, lost: bool
) -> None:
    """The update deletes the model that the endpoint runs, once it is old enough."""
    found = rehearsal(
        tmp_path, placed(), placed(2), meanwhile=(f"days={days}",), files={"function.zip": placing}
    )
    assert codes(found) == ({"rehearse-reader-loses-access"} if lost else set())
    assert not lost or found.errors[0].message.startswith("from step 1 (update Placed) on")


def test_lifecycle_rule_deletes_what_is_old(tmp_path: Path, placing: bytes) -> None:
    """The rule names the objects by their beginning."""
    for prefix, lost in (("model", True), ("other", False)):
        rule = {"Status": "Enabled", "ExpirationInDays": 7, "Prefix": prefix}
        old = placed(LifecycleConfiguration={"Rules": [rule]})
        found = rehearsal(
            tmp_path, old, old, meanwhile=("days=7", "days=1"), files={"function.zip": placing}
        )
        assert [problem.message[:18] for problem in found.errors] == ["after a day passes"] * lost


def test_damaged_index_gets_the_answer_of_the_function(tmp_path: Path, placing: bytes) -> None:
    """Update and rollback fail with the reason that the function gives."""
    found = rehearsal(
        tmp_path,
        placed(),
        placed(2),
        meanwhile=("damaged=index.json",),
        files={"function.zip": placing},
    )
    assert codes(found) == {"rehearse-update-fails"}
    assert found.status == {"S": "UPDATE_ROLLBACK_FAILED"}
    assert "JSONDecodeError" in found.reason


@pytest.mark.parametrize(
    ("old", "status"), [(placed(), "UPDATE_ROLLBACK_COMPLETE"), (None, "ROLLBACK_FAILED")]
)
def test_function_that_answers_failed(
    tmp_path: Path, placing: bytes, old: Resources | None, status: str
) -> None:
    """It has done its work.

    After a creation, its own answer says which resource has to be deleted.
    """
    found = rehearsal(
        tmp_path,
        old,
        placed(2),
        meanwhile=("function-fails=Placed",),
        files={"function.zip": placing},
    )
    assert found.status == {"S": status}
    assert "Received response status [FAILED] from custom resource" in found.problems[0].message


def test_every_new_custom_resource_answers_failed_once(tmp_path: Path, placing: bytes) -> None:
    """A lost response leaves another ID than such an answer,
    and only the latter leaves the objects.
    """
    found = rehearsal(tmp_path, None, placed(), failures="each", files={"function.zip": placing})
    (problem,) = of_code(found.errors, "rehearse-rollback-fails")
    assert problem.path == "Placed"
    ends = {
        failure.event: failure.status
        for failure in found.failures
        if failure.logical_id == "Placed"
    }
    assert ends == {"fails": "ROLLBACK_COMPLETE", "answers FAILED": "ROLLBACK_FAILED"}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (f"days={'9' * 5_000}", "must name something in at most 2048 characters, got 5000"),
        ("days=99999999999999999999", "must end with a number up to 100000, got '9999"),
        ("fleet=digits:100001", "must end with a number up to 100000, got 'digits:100001'"),
        ("days=-1", "must end with a whole number, got '-1'"),
        ("log-group=a b", "up to 512 letters, digits and characters of ._-/#, got 'a b'"),
        (f"log-group={'a' * 513}", "up to 512 letters"),
    ],
    ids=lambda value: value[:24],
)
def test_impossible_events_are_refused(tmp_path: Path, event: str, message: str) -> None:
    """Numbers without bounds, and names that AWS refuses, are errors of the argument."""
    folder = write_assembly(tmp_path / "old", endpoint())
    with pytest.raises(InvalidValueError) as error:
        rehearse(folder, folder, meanwhile=[event], failures="none", orders=1)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("thunder=Endpoint", "must be one of log-group=NAME, fleet=ENDPOINT:COUNT"),
        ("quota=ml.g5.xlarge", "must end with a whole number, got 'ml.g5.xlarge'"),
        ("host-replaced=letters", "no endpoint 'letters'; pass one of digits (Endpoint)"),
        ("key-disabled=Key", "no key 'Key'; there is none; remove this"),
        (
            "no-capacity=ml.p5.48xlarge",
            "no instance type 'ml.p5.48xlarge'; pass one of ml.g5.xlarge",
        ),
        ("image-deleted=other", f"no image 'other'; pass one of {IMAGE}"),
        (
            "damaged=index.json",
            f"no object 'index.json'; pass one of {BUCKET}/one.tar.gz, {BUCKET}/two.tar.gz",
        ),
        ("function-fails=Endpoint", "no custom resource 'Endpoint'; there is none; remove this"),
    ],
)
def test_unknown_events_are_errors_that_list_what_exists(
    tmp_path: Path, event: str, message: str
) -> None:
    """The error of a subject comes from the process that rehearses."""
    folder = write_assembly(tmp_path / "old", endpoint())
    with pytest.raises(InvalidValueError) as error:
        rehearse(folder, folder, meanwhile=[event], failures="none", orders=1)
    assert message in str(error.value)
