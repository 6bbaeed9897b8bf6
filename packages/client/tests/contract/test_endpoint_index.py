"""The index of a deployed endpoint, read through boto3 and moto's SageMaker and S3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from constructs_triton_client import ModelIndex, SageMakerTransport, TritonClient
from constructs_triton_core.errors import InvalidValueError, InvocationError

TENANTS = {f"tenant{number:03}": f"tenant{number:03}-3f9c2a1b.tar.gz" for number in range(1000)}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    """A session of a simulated account with a bucket and the endpoints ``many`` and ``one``."""
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        session = boto3.Session("id", "secret", region_name="eu-west-1")
        session.client("s3").create_bucket(
            Bucket="many-models", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
        )
        _endpoint(
            session, "many", {"Mode": "MultiModel", "ModelDataUrl": "s3://many-models/models/"}
        )
        _endpoint(session, "one", {"ModelDataUrl": "s3://many-models/model.tar.gz"})
        yield session


def _endpoint(session: boto3.Session, name: str, container: dict[str, str]) -> None:
    sagemaker: Any = session.client("sagemaker")
    role = "arn:aws:iam::123456789012:role/r"
    container = {"Image": "i", **container}
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=role, PrimaryContainer=container)
    variant = {
        "VariantName": "A",
        "ModelName": name,
        "InitialInstanceCount": 1,
        "InstanceType": "ml.g4dn.xlarge",
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


def test_client_finds_the_index_of_an_endpoint(session: boto3.Session) -> None:
    """A name is found without an index argument;
    an unknown one names the command that lists all.
    """
    text = json.dumps({"version": 1, "target_models": TENANTS})
    session.client("s3").put_object(Bucket="many-models", Key="models/index.json", Body=text)
    client = TritonClient.for_endpoint("many", session=session)
    assert client.archive_of("tenant571") == TENANTS["tenant571"]
    with pytest.raises(InvalidValueError) as caught:
        client.archive_of("tenan571")
    assert str(caught.value) == (
        "target_model: s3://many-models/models/index.json has 1,000 models, and none is named "
        '"tenan571"; did you mean "tenant571"? '
        "`constructs-triton models list --bucket many-models --prefix models/` lists all names"
    )


def test_endpoint_without_an_index_refuses_names(session: boto3.Session) -> None:
    """Archives are sent as they are; for a name, the error says why no archive is known."""
    client = TritonClient.for_endpoint("many", session=session)
    assert client.archive_of("mood.tar.gz") == "mood.tar.gz"
    with pytest.raises(
        InvalidValueError,
        match=r's3://many-models/models/ has no index\.json, so the archive of "mood"',
    ):
        client.archive_of("mood")
    with pytest.raises(
        InvalidValueError, match=r"one is not a multi-model endpoint, got .*; remove target"
    ):
        TritonClient.for_endpoint("one", session=session).archive_of("mood")
    with pytest.raises(
        InvocationError, match=r"Could not find endpoint .*check the name and the Region"
    ):
        TritonClient.for_endpoint("none", session=session).archive_of("mood")


def test_index_is_read_from_the_given_uri(session: boto3.Session) -> None:
    """A client with the URI of the index or of its folder finds models by name.

    An object that is missing is S3's reason.
    """
    text = json.dumps({"version": 1, "target_models": TENANTS})
    session.client("s3").put_object(Bucket="many-models", Key="m/index.json", Body=text)
    client = TritonClient.for_endpoint(
        "demo", session=session, index="s3://many-models/m/index.json"
    )
    for folder in ("s3://many-models/m/", "s3://many-models/m"):
        assert (
            TritonClient.for_endpoint("demo", session=session, index=folder).index == client.index
        )
    assert isinstance(client.index, ModelIndex)
    assert client.index.target_model("tenant571") == TENANTS["tenant571"]
    with pytest.raises(InvalidValueError, match='did you mean "tenant571"'):
        client.infer({}, TargetModel="tenan571")
    with pytest.raises(
        InvocationError, match=r"key does not exist.*; check the bucket and the key"
    ):
        TritonClient.for_endpoint("demo", session=session, index="s3://many-models/none.json")


def test_caller_who_may_not_describe_the_endpoint(
    session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the permissions, and the argument that needs none of them."""
    client = TritonClient.for_endpoint("many", session=session)
    message = "User: me is not authorized to perform: sagemaker:DescribeEndpoint"

    def refuse(**_: Any) -> None:
        raise ClientError(
            {"Error": {"Code": "AccessDeniedException", "Message": message}}, "DescribeEndpoint"
        )

    transport = client.transport
    assert isinstance(transport, SageMakerTransport)
    monkeypatch.setattr(transport.client("sagemaker"), "describe_endpoint", refuse)
    with pytest.raises(
        InvocationError, match=r"may not be read .*DescribeEndpoint; allow .* as index"
    ):
        client.archive_of("mood")
