"""Endpoints found in a cloud assembly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from constructs_triton.custom_resource_handlers.model_sync.manifest import ListedArchive, Manifest
from constructs_triton.custom_resource_handlers.model_sync.properties import SyncProperties
from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.sources.assembly import read_endpoints

BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"


def _template(endpoint_name: str | None = None, **container: Any) -> dict[str, Any]:
    model = {"ModelDataUrl": {"Fn::Sub": f"s3://{BUCKET}/abc.tar.gz"}, "Image": "i", **container}
    variant = {"VariantName": "AllTraffic", "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]}}
    endpoint: dict[str, Any] = {"EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]}}
    if endpoint_name:
        endpoint["EndpointName"] = endpoint_name
    return {
        "Resources": {
            "Bucket": {"Type": "AWS::S3::Bucket"},
            "Model": {"Type": "AWS::SageMaker::Model", "Properties": {"PrimaryContainer": model}},
            "Config": {
                "Type": "AWS::SageMaker::EndpointConfig",
                "Properties": {"ProductionVariants": [variant]},
            },
            "Endpoint": {"Type": "AWS::SageMaker::Endpoint", "Properties": endpoint},
        }
    }


def _write(directory: Path, template: dict[str, Any], *, stack: str = "Demo", **more: Any) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "asset.abc.tar.gz").write_bytes(b"archive")
    files = {
        path.name: {
            "source": {"path": path.name, "packaging": "file"},
            "destinations": {"d": {"bucketName": BUCKET, "objectKey": path.name.removeprefix("asset.")}},
        }
        for path in directory.glob("asset.*")
    }
    artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": f"{stack}.json"}}
    assets = {"type": "cdk:asset-manifest", "properties": {"file": f"{stack}.assets.json"}}
    artifacts = {stack: artifact, f"{stack}.assets": assets, **more}
    (directory / f"{stack}.json").write_text(json.dumps(template))
    (directory / f"{stack}.assets.json").write_text(json.dumps({"files": files}))
    (directory / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return directory


def test_follows_endpoint_to_archive(tmp_path: Path) -> None:
    """Endpoint, configuration, model and asset are joined; the environment's values become text."""
    template = _template("digits", Environment={"SAGEMAKER_TRITON_THREAD_COUNT": 4, "A": True})
    (spec,) = read_endpoints(_write(tmp_path, template))
    container = spec.variants[0].container
    assert (spec.name, spec.stack, spec.variants[0].name) == ("digits", "Demo", "AllTraffic")
    assert container.archive == tmp_path / "asset.abc.tar.gz"
    assert container.environment == {"SAGEMAKER_TRITON_THREAD_COUNT": "4", "A": "true"}
    assert not container.is_multi_model


def test_an_unnamed_endpoint_is_called_by_its_logical_id(tmp_path: Path) -> None:
    """CloudFormation would invent a name that changes with each deployment."""
    assert read_endpoints(_write(tmp_path, _template()))[0].name == "Endpoint"


def test_multi_model_archives_come_from_the_custom_resource_of_their_prefix(tmp_path: Path) -> None:
    """Only what is synchronized to the bucket and prefix of the model's location belongs to it."""
    url = {"Fn::Join": ["", ["s3://", {"Ref": "Bucket"}, "/models/"]]}
    template = _template(Mode="MultiModel", ModelDataUrl=url)
    for name, prefix, target in (("Mine", "models/", "a.tar.gz"), ("Other", "others/", "b.tar.gz")):
        manifest = Manifest.of([ListedArchive("a", "abc.tar.gz", target)])
        (tmp_path / f"asset.{name}.json").write_text(manifest.to_json())
        properties = SyncProperties("assets", f"{name}.json", manifest.digest, "", prefix)
        template["Resources"][name] = {
            "Type": "Custom::TritonModelSync",
            "Properties": {**properties.to_cloudformation(), "DestinationBucket": {"Ref": "Bucket"}},
        }
    container = read_endpoints(_write(tmp_path, template))[0].variants[0].container
    assert container.is_multi_model
    assert container.archives == {"a.tar.gz": tmp_path / "asset.abc.tar.gz"}


def test_nested_stacks_and_stages_are_searched(tmp_path: Path) -> None:
    """A nested stack's template takes its parameters from its parent; a stage is an assembly of its own."""
    nested = _template({"Ref": "Name"})  # type: ignore[arg-type]  # an intrinsic function, not a text
    nested["Parameters"] = {"Name": {"Type": "String"}}
    (tmp_path / "nested.json").write_text(json.dumps(nested))
    parent = {
        "Resources": {
            "Nested": {
                "Type": "AWS::CloudFormation::Stack",
                "Metadata": {"aws:asset:path": "nested.json"},
                "Properties": {"Parameters": {"Name": "inner"}},
            }
        }
    }
    stage: Any = {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-Prod"}}
    _write(tmp_path, parent, **{"assembly-Prod": stage})
    _write(tmp_path / "assembly-Prod", _template("staged"), stack="Prod")
    assert [spec.name for spec in read_endpoints(tmp_path)] == ["inner", "staged"]
    assert [spec.name for spec in read_endpoints(tmp_path, stack="Prod")] == ["staged"]
    assert [spec.name for spec in read_endpoints(tmp_path, endpoint="inner")] == ["inner"]


def test_a_directory_without_an_assembly_says_how_to_make_one(tmp_path: Path) -> None:
    """The command that writes it is named."""
    with pytest.raises(
        LocalEndpointError, match=r"manifest.json: there is no cloud assembly .* `npx cdk synth`"
    ):
        read_endpoints(tmp_path)


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"stack": "Absent"}, "no such stack, got 'Absent'; the assembly has Demo"),
        ({}, {"endpoint": "Absent"}, "no stack holds endpoint 'Absent', looked in Demo"),
        ({"ModelDataUrl": "s3://bucket/far.tar.gz"}, {}, "no such asset, got object key 'far.tar.gz'"),
        ({"ModelDataUrl": None}, {}, "names no archive of model data"),
    ],
)
def test_what_cannot_run_here_is_named(
    tmp_path: Path, change: dict[str, Any], options: dict[str, str], words: str
) -> None:
    """The stack, the model and the value are in the message."""
    _write(tmp_path, _template(**change))
    with pytest.raises(LocalEndpointError, match=words):
        read_endpoints(tmp_path, **options)


def test_a_model_of_another_stack_is_refused(tmp_path: Path) -> None:
    """Its archive is not known to this stack's template."""
    template = _template()
    variant = template["Resources"]["Config"]["Properties"]["ProductionVariants"][0]
    variant["ModelName"] = "elsewhere"
    with pytest.raises(
        LocalEndpointError, match="no AWS::SageMaker::Model of this stack is called 'elsewhere'"
    ):
        read_endpoints(_write(tmp_path, template))
