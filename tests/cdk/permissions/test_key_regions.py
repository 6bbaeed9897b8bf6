"""Keys of encrypted data: their Region, and the permissions for previous keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from cdk_apps import (
    add_endpoint,
    add_many,
    add_repository,
    flat,
    make_stack,
    statement_list,
    statements,
    synthesize,
)
from cdk_apps import write_repository as write

from constructs_triton import (
    AsyncInferenceConfig,
    CoreDump,
    DataCapture,
    InstanceType,
    ModelSource,
    TritonComponentEndpoint,
)
from constructs_triton.cdk import DeployTimeFunctions
from constructs_triton_core.errors import InvalidValueError

FOREIGN = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
G5 = InstanceType.of("ml.g5.xlarge")


def key(stack: cdk.Stack, arn: str = FOREIGN) -> kms.IKey:
    return kms.Key.from_key_arn(stack, "Key", arn)


def bucket(stack: cdk.Stack, *, has_key: bool = False) -> s3.IBucket:
    """A bucket in the Region of the stack, whose key can be in another one."""
    encryption_key = key(stack) if has_key else None
    return s3.Bucket.from_bucket_attributes(
        stack, "Bucket", bucket_name="outside", region="eu-west-1", encryption_key=encryption_key
    )


def queue(stack: cdk.Stack, **options: Any) -> dict[str, Any]:
    """The properties of an asynchronous endpoint."""
    if "bucket" not in options:
        options["bucket"] = bucket(stack)
    return {"async_inference": AsyncInferenceConfig(**options)}


def logs(stack: cdk.Stack, path: Path) -> None:
    """Encrypt the logs of the functions of the deployment."""
    DeployTimeFunctions.of(stack).configure(log_encryption_key=key(stack))
    add_many(stack, path)


def endpoint(make: Callable[[cdk.Stack], dict[str, Any]]) -> Callable[[cdk.Stack, Path], Any]:
    return lambda stack, path: add_endpoint(stack, path, **make(stack))


def repository(make: Callable[[cdk.Stack], dict[str, Any]]) -> Callable[[cdk.Stack, Path], Any]:
    return lambda stack, path: add_repository(stack, path, **make(stack))


CASES: dict[str, Callable[[cdk.Stack, Path], Any]] = {
    "encryption_key": endpoint(lambda stack: {"encryption_key": key(stack)}),
    "async_inference.encryption_key": endpoint(
        lambda stack: queue(stack, encryption_key=key(stack))
    ),
    "async_inference.bucket": endpoint(
        lambda stack: queue(stack, bucket=bucket(stack, has_key=True))
    ),
    "async_inference.error_topic": endpoint(
        lambda stack: queue(stack, error_topic=sns.Topic(stack, "Topic", master_key=key(stack)))
    ),
    r"async_inference.previous_encryption_keys\[0\]": endpoint(
        lambda stack: queue(stack, previous_encryption_keys=[key(stack)])
    ),
    "data_capture.encryption_key": endpoint(
        lambda stack: {"data_capture": DataCapture(bucket=bucket(stack), encryption_key=key(stack))}
    ),
    "core_dump.encryption_key": endpoint(
        lambda stack: {"core_dump": CoreDump(bucket=bucket(stack), encryption_key=key(stack))}
    ),
    "encryption_key ": lambda stack, _: TritonComponentEndpoint(
        stack,
        "Host",
        instance_type=G5,
        min_instance_count=1,
        max_instance_count=1,
        encryption_key=key(stack),
    ),
    "encryption_key  ": repository(lambda stack: {"encryption_key": key(stack)}),
    "asset_encryption_key": repository(lambda stack: {"asset_encryption_key": key(stack)}),
    r"previous_encryption_keys\[0\]": repository(
        lambda stack: {"previous_encryption_keys": [key(stack)]}
    ),
    "bucket": repository(lambda stack: {"bucket": bucket(stack, has_key=True)}),
    "source": lambda stack, path: add_repository(stack, path).add_model(
        "added", ModelSource.from_bucket(bucket(stack, has_key=True), "other.tar.gz")
    ),
    "log_encryption_key": logs,
}


@pytest.mark.parametrize("name", CASES)
def test_key_of_another_region_is_refused(tmp_path: Path, name: str) -> None:
    """Each property that takes a key names itself, both Regions and the key;
    a token may be in any Region.
    """
    path = write(tmp_path / "models")
    place = rf"^{name.strip()}: its KMS key must be in the Region of the stack"
    message = rf"{place}, eu-west-1, got us-east-1 \({FOREIGN}\)"
    with pytest.raises(InvalidValueError, match=message):
        CASES[name](make_stack(), path)
    CASES[name](make_stack(environment=None), path)


def test_key_of_a_stack_in_another_region_is_named_by_its_path(tmp_path: Path) -> None:
    """The ARN of a key that the app creates is a token, which would say nothing to the reader."""
    stack = make_stack()
    there = cdk.Stack(
        cdk.Stage.of(stack), "There", env=cdk.Environment(account="1" * 12, region="us-east-1")
    )
    with pytest.raises(
        InvalidValueError, match=r"got us-east-1 \(There/Key\); use a key in eu-west-1"
    ):
        add_endpoint(stack, tmp_path, encryption_key=kms.Key(there, "Key"))


@pytest.mark.parametrize("name", ["bucket", "input_bucket"])
def test_async_bucket_of_another_region(tmp_path: Path, name: str) -> None:
    """An imported or a named bucket is a warning; one that the CDK cannot refer
    to is an error with a fix.
    """
    stack = make_stack()
    there = cdk.Stack(
        cdk.Stage.of(stack), "There", env=cdk.Environment(account=stack.account, region="us-east-1")
    )
    fine = bucket(stack)
    imported = s3.Bucket.from_bucket_attributes(
        stack, "Imported", bucket_name="outside", region="us-east-1"
    )
    named = s3.Bucket(there, "Named", bucket_name="a-name")
    for number, foreign in enumerate((imported, named)):
        config = AsyncInferenceConfig(**{"bucket": fine, name: foreign})
        endpoint = add_endpoint(stack, tmp_path, f"Endpoint{number}", async_inference=config)
        entries = endpoint.node.metadata
        (text,) = (str(entry.data) for entry in entries if entry.type == "aws:cdk:warning")
        assert text.startswith(
            f"async_inference.{name}: AWS does not say that the bucket may be in another"
        )
        assert "eu-west-1, got us-east-1; use a bucket in eu-west-1, or acknowledge" in text

    config = AsyncInferenceConfig(**{"bucket": fine, name: s3.Bucket(there, "Unnamed")})
    message = (
        rf"^async_inference.{name}: must be in the Region of the stack, eu-west-1, "
        r"got us-east-1 \(There"
    )
    with pytest.raises(InvalidValueError, match=message):
        add_endpoint(stack, tmp_path, "Refused", async_inference=config)


def test_key_that_is_a_token_may_be_in_any_region(tmp_path: Path) -> None:
    """An ARN from a parameter is not known at synth."""
    stack = make_stack()
    given = key(stack, cdk.CfnParameter(stack, "Arn").value_as_string)
    add_endpoint(stack, write(tmp_path / "models"), encryption_key=given)


def test_roles_may_use_previous_keys_of_a_queue(tmp_path: Path) -> None:
    """The execution role reads and writes with each key,
    and the callers encrypt and decrypt with each.
    """
    stack = make_stack()
    new = kms.Key(stack, "New")
    old = kms.Key(stack, "Old")
    caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    created = s3.Bucket(stack, "Queue", encryption_key=new)
    topic = sns.Topic(stack, "Topic", master_key=new)
    config = AsyncInferenceConfig(
        bucket=created, success_topic=topic, previous_encryption_keys=[old]
    )
    endpoint = add_endpoint(stack, write(tmp_path / "models"), async_inference=config)
    endpoint.grant_invoke_async(caller)

    template = synthesize(stack)

    for sid in ("DecryptAsyncInput", "EncryptAsyncOutput", "EncryptAsyncMessages"):
        assert keys_of(statements(template)[sid]) == ["New", "Old"], sid
    of_caller = statement_list(template, "Caller")
    (encrypt,) = (found for found in of_caller if "kms:GenerateDataKey" in found["Action"])
    assert keys_of(encrypt) == ["New", "Old"]


def keys_of(statement: dict[str, Any]) -> list[str]:
    """The first letters of the logical IDs of the keys of a statement."""
    return [flat(arn)[1:4] for arn in statement["Resource"]]


def test_endpoint_of_one_model_reads_archives_with_previous_keys(tmp_path: Path) -> None:
    """Objects of the asset bucket keep their key; each statement has an ID of its own."""
    stack = make_stack()
    repository = add_repository(
        stack,
        write(tmp_path / "models"),
        asset_encryption_key=kms.Key(stack, "New"),
        previous_encryption_keys=[kms.Key(stack, "Old"), kms.Key(stack, "Elder")],
    )
    add_endpoint(stack, repository, model="other")

    found = statements(synthesize(stack))

    decrypting = [found[sid] for sid in found if sid.startswith("DecryptModel")]
    assert [flat(statement["Resource"])[1:4] for statement in decrypting] == ["New", "Old", "Eld"]
