"""Downloads for deployed endpoints, without AWS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from constructs_triton_core.aws_reader import AwsError, AwsReader
from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.sources import deployed
from constructs_triton_tools.local.sources.deployed import _Objects, read_deployed_endpoints


class Account:
    """A session with one client."""

    region_name = "us-east-1"

    def __init__(self, client: object) -> None:
        self._client = client

    def client(self, *_: object, **_settings: object) -> Any:
        return self._client


class Bucket:
    """An S3 client whose downloads succeed or fail with an error code."""

    meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_, **_settings: None))

    def __init__(self, code: str | None = None) -> None:
        self.code = code

    def download_file(self, bucket: str, key: str, path: str) -> None:
        if self.code is not None:
            raise ClientError({"Error": {"Code": self.code}}, "HeadObject")
        Path(path).write_text(f"{bucket} {key}")


class Listing(Bucket):
    """An S3 client with objects of these keys."""

    def __init__(self, *keys: str) -> None:
        super().__init__()
        self._keys = keys

    def get_paginator(self, _: str) -> Listing:
        return self

    def paginate(self, **_: str) -> Iterator[dict[str, Any]]:
        for key in self._keys:
            yield {"Contents": [{"Key": key}]}


def objects_of(client: object, folder: Path) -> _Objects:
    return _Objects(AwsReader(cast(Any, Account(client))), folder)


def test_files_below_a_prefix_are_downloaded(tmp_path: Path) -> None:
    """Each object is a file with the rest of its key as its path."""
    bucket = Listing("p/net/config.pbtxt", "p/net/1/a", "p/net/1/a.part")
    files = objects_of(bucket, tmp_path).fetch_below("s3://models/p/")
    assert {path: content.path.read_text() for path, content in files.items()} == {
        "net/config.pbtxt": "models p/net/config.pbtxt",
        "net/1/a": "models p/net/1/a",
        "net/1/a.part": "models p/net/1/a.part",
    }


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ((), "there are no objects; deploy the endpoint again"),
        (("p/net/", "p/net/1/a"), "has an empty name"),
        (("p/../../a",), r'"\.\." in its path'),
        (("p/net", "p/net/1/a"), "is below a file"),
    ],
)
def test_files_that_sagemaker_cannot_place_are_errors(
    tmp_path: Path, keys: tuple[str, ...], words: str
) -> None:
    """Nothing is downloaded if a name is not valid."""
    with pytest.raises(LocalEndpointError, match=words):
        objects_of(Listing(*keys), tmp_path).fetch_below("s3://models/p/")
    assert list(tmp_path.iterdir()) == []


def test_object_is_below_its_bucket(tmp_path: Path) -> None:
    """The complete download has the object's own name."""
    path = objects_of(Bucket(), tmp_path).fetch("s3://models/p/a.tar.gz")
    assert path == tmp_path / "models" / "p" / "a.tar.gz"
    assert path.read_text() == "models p/a.tar.gz"


def test_key_that_leads_elsewhere_is_not_downloaded(tmp_path: Path) -> None:
    """A model data URL, or the target model of a request, creates nothing outside of the folder."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    objects = objects_of(Bucket(), folder)
    with pytest.raises(LocalEndpointError, match="leads out of the folder of downloads"):
        objects.fetch("s3://models/../../p/a.tar.gz")
    assert objects.below("s3://models/p/")("../../../p/a.tar.gz") is None
    assert [path.name for path in tmp_path.iterdir()] == ["downloads"]


@pytest.mark.parametrize("code", ["404", "NoSuchKey", "NotFound"])
def test_missing_object_is_no_error_unless_it_is_required(tmp_path: Path, code: str) -> None:
    """A model may be missing below a prefix, an archive must exist;
    any other error of S3 is raised.
    """
    objects = objects_of(Bucket(code), tmp_path)
    assert objects.fetch("s3://models/a.tar.gz") is None
    with pytest.raises(
        LocalEndpointError, match=r"s3://models/a.tar.gz: the object does not exist"
    ):
        objects.fetch_required("s3://models/a.tar.gz")
    with pytest.raises(AwsError, match=r"^s3:GetObject: access denied"):
        objects_of(Bucket("AccessDenied"), tmp_path).fetch("s3://models/a.tar.gz")


class Shared(Bucket):
    """The clients of an account with one endpoint that has four inference components,
    one not of Triton and one its adapter.
    """

    def get_paginator(self, operation: str) -> Shared:
        self.operation = operation
        return self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        if self.operation == "list_endpoints":
            yield {"Endpoints": [{"EndpointName": "shared"}]}
            return
        if self.operation == "list_stack_resources":
            found = [("AWS::SageMaker::Endpoint", "arn:aws:sagemaker:us-east-1:1:endpoint/shared")]
            listed = found if request["StackName"] == "Shop" else [("AWS::S3::Bucket", "models")]
            yield {
                "StackResourceSummaries": [
                    {"ResourceType": kind, "PhysicalResourceId": name} for kind, name in listed
                ]
            }
            return
        for name in ("awake", "chat", "captions", "asleep"):
            yield {"InferenceComponents": [{"InferenceComponentName": name}]}

    def describe_endpoint(self, **_: Any) -> dict[str, Any]:
        return {
            "EndpointConfigName": "c",
            "EndpointArn": "arn:aws:sagemaker:us-east-1:1:endpoint/shared",
        }

    def describe_endpoint_config(self, **_: Any) -> dict[str, Any]:
        return {
            "ProductionVariants": [{"VariantName": "AllTraffic", "InstanceType": "ml.g5.xlarge"}]
        }

    def describe_model(self, **request: Any) -> dict[str, Any]:
        name = "vllm" if request["ModelName"] == "m-chat" else "sagemaker-tritonserver"
        image = f"1.dkr.ecr.us-east-1.amazonaws.com/{name}:1"
        return {"PrimaryContainer": {"Image": image, "ModelDataUrl": "s3://models/a.tar.gz"}}

    def describe_inference_component(self, **request: Any) -> dict[str, Any]:
        if request["InferenceComponentName"] == "captions":
            return {"Specification": {"BaseInferenceComponentName": "chat"}}
        copies = 0 if request["InferenceComponentName"] == "asleep" else 1
        return {
            "VariantName": "AllTraffic",
            "Specification": {
                "ModelName": f"m-{request['InferenceComponentName']}",
                "StartupParameters": {"ContainerStartupHealthCheckTimeoutInSeconds": 600},
            },
            "RuntimeConfig": {"CurrentCopyCount": copies},
        }


def test_deployed_components_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With their archives; one that has no copies now starts at zero."""
    monkeypatch.setattr(deployed, "make_session", lambda: Account(Shared()))
    (spec,) = read_deployed_endpoints("http://127.0.0.1:1", tmp_path)
    assert (spec.name, spec.variants, spec.not_run) == ("shared", (), ("chat", "captions"))
    starts = {each.name: each.starts_at_zero for each in spec.components}
    assert starts == {"awake": False, "asleep": True}
    (first, _) = spec.components
    assert (first.instance_types, first.startup_timeout_seconds) == (("ml.g5.xlarge",), 600)
    assert first.container.archive == tmp_path / "models" / "a.tar.gz"


def test_stack_chooses_its_endpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoints are those among the resources of the stack; a stack without any is an error."""
    monkeypatch.setattr(deployed, "make_session", lambda: Account(Shared()))
    (spec,) = read_deployed_endpoints("http://127.0.0.1:1", tmp_path, stack="Shop")
    assert spec.name == "shared"
    with pytest.raises(LocalEndpointError, match="no endpoint is deployed in the stack 'Other' at"):
        read_deployed_endpoints("http://127.0.0.1:1", tmp_path, stack="Other")
