"""Reading the endpoints of a cloud assembly."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_functions.model_sync.manifest import ListedArchive, Manifest
from constructs_triton_functions.model_sync.properties import SyncProperties
from constructs_triton_tools.local.sources.assembly import read_endpoints
from constructs_triton_tools.local.sources.specs import AsyncInferenceSpec

BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"


def _template(endpoint_name: str | None = None, **container: Any) -> dict[str, Any]:
    model = {"ModelDataUrl": {"Fn::Sub": f"s3://{BUCKET}/abc.tar.gz"}, "Image": "i", **container}
    variant = {"VariantName": "AllTraffic", "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]}}
    endpoint: dict[str, Any] = {
        "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]}
    }
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
            "destinations": {
                "d": {"bucketName": BUCKET, "objectKey": path.name.removeprefix("asset.")}
            },
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


def _variant(template: dict[str, Any]) -> dict[str, Any]:
    variant: dict[str, Any] = template["Resources"]["Config"]["Properties"]["ProductionVariants"][0]
    return variant


def test_follows_endpoint_to_archive(tmp_path: Path) -> None:
    """Endpoint, configuration, model and asset are joined; environment values become strings."""
    template = _template("digits", Environment={"SAGEMAKER_TRITON_THREAD_COUNT": 4, "A": True})
    (spec,) = read_endpoints(_write(tmp_path, template))
    container = spec.variants[0].container
    assert (spec.name, spec.stack, spec.variants[0].name) == ("digits", "Demo", "AllTraffic")
    assert container.archive == tmp_path / "asset.abc.tar.gz"
    assert container.environment == {"SAGEMAKER_TRITON_THREAD_COUNT": "4", "A": "true"}
    assert not container.is_multi_model


@pytest.mark.parametrize(
    ("isolation", "is_isolated"),
    [({}, False), ({"EnableNetworkIsolation": False}, False)]
    + [({"EnableNetworkIsolation": value}, True) for value in (True, "true")],
)
def test_network_isolation_is_that_of_the_model(
    tmp_path: Path, isolation: dict[str, Any], is_isolated: bool
) -> None:
    """A boolean, or the string that a template may have in its place."""
    template = _template()
    template["Resources"]["Model"]["Properties"].update(isolation)
    (spec,) = read_endpoints(_write(tmp_path, template))
    assert spec.variants[0].container.is_isolated == is_isolated


def test_multi_model_archives_come_from_the_custom_resource_of_their_prefix(tmp_path: Path) -> None:
    """Only archives that are copied to the bucket and prefix of the model's URL belong to it."""
    url = {"Fn::Join": ["", ["s3://", {"Ref": "Bucket"}, "/models/"]]}
    template = _template(Mode="MultiModel", ModelDataUrl=url)
    for name, prefix, target in (("Mine", "models/", "a.tar.gz"), ("Other", "others/", "b.tar.gz")):
        manifest = Manifest.of([ListedArchive("a", "abc.tar.gz", target)])
        (tmp_path / f"asset.{name}.json").write_text(manifest.to_json())
        properties = SyncProperties("assets", f"{name}.json", manifest.digest, "", prefix)
        template["Resources"][name] = {
            "Type": "Custom::TritonModelSync",
            "Properties": {
                **properties.to_cloudformation(),
                "DestinationBucket": {"Ref": "Bucket"},
            },
        }
    container = read_endpoints(_write(tmp_path, template))[0].variants[0].container
    assert container.is_multi_model
    assert container.archives == {"a.tar.gz": tmp_path / "asset.abc.tar.gz"}


SECRETS: dict[str, Any] = {
    "of Secrets Manager": "{{resolve:secretsmanager:hub:SecretString:token::}}",
    "parameter": {"Ref": "HfToken"},
    "part": {"Fn::Join": ["", ["Bearer ", {"Ref": "HfToken"}]]},
}
HIDDEN = {"HfToken": {"Type": "String", "NoEcho": True}}


@pytest.mark.parametrize("name", SECRETS)
def test_the_caller_gives_the_value_of_a_secret(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dynamic reference and a hidden parameter have the value of the caller's variable, or what
    the terminal asks for.
    """
    template = _template(Environment={"HF_TOKEN": SECRETS[name], "MODE": "fast"})
    _write(tmp_path, {**template, "Parameters": HIDDEN})

    monkeypatch.setenv("HF_TOKEN", "given")
    container = read_endpoints(tmp_path)[0].variants[0].container
    assert container.environment == {"HF_TOKEN": "given", "MODE": "fast"}
    assert container.secrets == {"HF_TOKEN"}

    monkeypatch.delenv("HF_TOKEN")
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        with pytest.raises(LocalEndpointError, match="set HF_TOKEN in your environment"):
            read_endpoints(tmp_path)

    terminal, other_side = os.openpty()
    monkeypatch.setattr("getpass.getpass", lambda prompt, **_: f"answer to {prompt}")
    with os.fdopen(other_side) as keyboard:
        monkeypatch.setattr("sys.stdin", keyboard)
        container = read_endpoints(tmp_path)[0].variants[0].container
        monkeypatch.undo()
    os.close(terminal)
    assert container.environment["HF_TOKEN"] == "answer to Demo/Model: value of HF_TOKEN: "


def test_a_hidden_parameter_reaches_a_nested_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CDK passes it as a parameter that is not hidden; a default is what the template says."""
    nested = _template(Environment={"HF_TOKEN": {"Ref": "Passed"}, "API_KEY": {"Ref": "Open"}})
    nested["Parameters"] = {
        "Passed": {"Type": "String"},
        "Open": {"Type": "String", "NoEcho": True, "Default": "none"},
    }
    (tmp_path / "nested.json").write_text(json.dumps(nested))
    resource = {
        "Type": "AWS::CloudFormation::Stack",
        "Metadata": {"aws:asset:path": "nested.json"},
        "Properties": {"Parameters": {"Passed": {"Ref": "HfToken"}}},
    }
    _write(tmp_path, {"Parameters": HIDDEN, "Resources": {"Nested": resource}})
    monkeypatch.setenv("HF_TOKEN", "given")
    monkeypatch.setenv("API_KEY", "of another program")
    container = read_endpoints(tmp_path)[0].variants[0].container
    assert container.environment == {"HF_TOKEN": "given", "API_KEY": "none"}


def test_nested_stacks_and_stages_are_searched(tmp_path: Path) -> None:
    """A nested stack's template takes its parameters from its parent;
    a stage is another assembly.
    """
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


@pytest.mark.parametrize(
    ("container", "variant", "options", "words"),
    [
        ({}, {}, {"stack": "Absent"}, "no such stack, got 'Absent'; set --stack to one of Demo"),
        (
            {},
            {},
            {"endpoint": "Absent"},
            "no such endpoint, got 'Absent'; set --endpoint to one of Endpoint",
        ),
        (
            {"ModelDataUrl": "s3://bucket/far.tar.gz"},
            {},
            {},
            "no such asset, got object key 'far.tar.gz'",
        ),
        ({"ModelDataUrl": None}, {}, {}, "has no model data"),
        # This stack's template does not contain its archive.
        ({}, {"ModelName": "far"}, {}, "no AWS::SageMaker::Model of this stack has the name 'far'"),
    ],
)
def test_what_does_not_run_locally_is_reported(
    tmp_path: Path, container: Any, variant: Any, options: dict[str, str], words: str
) -> None:
    """The stack, the model and the value are in the message;
    a deleted asset needs `cdk synth` again.
    """
    template = _template(**container)
    _variant(template).update(variant)
    _write(tmp_path, template)
    with pytest.raises(LocalEndpointError, match=words):
        read_endpoints(tmp_path, **options)
    _write(tmp_path, _template())
    (tmp_path / "asset.abc.tar.gz").unlink()
    with pytest.raises(
        LocalEndpointError, match=r"abc\.tar\.gz does not exist.*run `npx cdk synth` again"
    ):
        read_endpoints(tmp_path)


def test_other_endpoints_need_not_run_locally(tmp_path: Path) -> None:
    """--endpoint is the way out of a template with an endpoint that cannot run on this machine."""
    template = _template("good")
    bad = {"EndpointConfigName": "elsewhere", "EndpointName": "bad"}
    template["Resources"]["Bad"] = {"Type": "AWS::SageMaker::Endpoint", "Properties": bad}
    _write(tmp_path, template)
    with pytest.raises(LocalEndpointError, match="no AWS::SageMaker::EndpointConfig of this stack"):
        read_endpoints(tmp_path)
    assert [spec.name for spec in read_endpoints(tmp_path, endpoint="good")] == ["good"]
    with pytest.raises(LocalEndpointError, match="got 'x'; set --endpoint to one of good, bad"):
        read_endpoints(tmp_path, endpoint="x")


def test_endpoint_of_a_false_condition_does_not_run(tmp_path: Path) -> None:
    """A deployment would not create it.

    A value that is known only then is an error with its place.
    """
    template = _template()
    template["Resources"]["Endpoint"]["Condition"] = "Never"
    template["Conditions"] = {"Never": {"Fn::Equals": ["a", "b"]}}
    with pytest.raises(LocalEndpointError, match=r"no stack contains an AWS::SageMaker::Endpoint"):
        read_endpoints(_write(tmp_path, template))
    template = _template(Image={"Ref": "Image"})
    template["Parameters"] = {"Image": {"Type": "String"}}
    with pytest.raises(
        LocalEndpointError, match=r"^Demo/Model: .*parameter without a default .*'Image'"
    ):
        read_endpoints(_write(tmp_path, template))


def test_variants_keep_their_settings(tmp_path: Path) -> None:
    """Weight, instance type, startup timeout, cache setting and the asynchronous configuration."""
    template = _template(MultiModelConfig={"ModelCacheSetting": "Disabled"}, Mode="MultiModel")
    settings = {
        "InitialVariantWeight": 3,
        "InstanceType": "ml.g5.xlarge",
        "ContainerStartupHealthCheckTimeoutInSeconds": 77,
    }
    _variant(template).update(settings)
    config = template["Resources"]["Config"]["Properties"]
    config["ShadowProductionVariants"] = [
        {**config["ProductionVariants"][0], "VariantName": "Shadow"}
    ]
    config["AsyncInferenceConfig"] = {
        "OutputConfig": {"S3OutputPath": "s3://o", "S3FailurePath": "s3://f"},
        "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 9},
    }
    (spec,) = read_endpoints(_write(tmp_path, template))
    (variant,), (shadow,) = spec.variants, spec.shadow_variants
    assert (variant.weight, variant.startup_timeout_seconds) == (3.0, 77)
    assert list(variant.instance_types) == ["ml.g5.xlarge"]
    assert (variant.container.model_cache_setting, variant.container.is_multi_model) == (
        "Disabled",
        True,
    )
    assert shadow.name == "Shadow"
    assert spec.asynchronous == AsyncInferenceSpec("s3://o", "s3://f", 9)


def test_defaults_of_variants(tmp_path: Path) -> None:
    """Weight 1, models are cached, four asynchronous requests at the same time."""
    template = _template()
    config = template["Resources"]["Config"]["Properties"]
    config["AsyncInferenceConfig"] = {"OutputConfig": {"S3OutputPath": "s3://o"}}
    (spec,) = read_endpoints(_write(tmp_path, template))
    (variant,) = spec.variants
    assert (variant.weight, variant.startup_timeout_seconds) == (1.0, None)
    assert (variant.container.model_cache_setting, variant.container.is_multi_model) == (
        "Enabled",
        False,
    )
    assert spec.asynchronous == AsyncInferenceSpec("s3://o", None, 4)
    assert (spec.region, spec.account) == ("us-east-1", "123456789012")
    assert (
        spec.name == "Endpoint"
    )  # its logical ID: CloudFormation would generate another one each time


def test_the_environment_of_a_stack_is_that_of_its_endpoints(tmp_path: Path) -> None:
    """Messages and log groups contain the Region and the account."""
    _write(tmp_path, _template())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["artifacts"]["Demo"]["environment"] = "aws://111122223333/eu-west-1"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (spec,) = read_endpoints(tmp_path)
    assert (spec.region, spec.account) == ("eu-west-1", "111122223333")


def test_a_model_may_use_model_data_source(tmp_path: Path) -> None:
    """ModelDataSource with CompressionType Gzip; None needs an S3Prefix."""
    uri = {"Fn::Sub": f"s3://{BUCKET}/abc.tar.gz"}
    for compression, is_found in (("Gzip", True), ("None", False)):
        source = {"S3DataSource": {"S3Uri": uri, "CompressionType": compression}}
        _write(tmp_path, _template(ModelDataUrl=None, ModelDataSource=source))
        if is_found:
            (spec,) = read_endpoints(tmp_path)
            assert spec.variants[0].container.archive == tmp_path / "asset.abc.tar.gz"
        else:
            with pytest.raises(LocalEndpointError, match="has no model data; set ModelDataUrl"):
                read_endpoints(tmp_path)


def test_serial_inference_pipelines_do_not_run_locally(tmp_path: Path) -> None:
    """The error names the fix."""
    template = _template()
    model = template["Resources"]["Model"]["Properties"]
    container = model.pop("PrimaryContainer")
    model["Containers"] = [container, container]
    with pytest.raises(LocalEndpointError, match=r"must have one container, got 2; .*--endpoint"):
        read_endpoints(_write(tmp_path, template))
    model["Containers"] = [container]
    assert len(read_endpoints(_write(tmp_path, template))) == 1


def test_two_endpoints_of_one_name_need_a_stack(tmp_path: Path) -> None:
    """Callers could not tell them apart; --stack chooses one."""
    _write(tmp_path, _template("same"))
    first = json.loads((tmp_path / "manifest.json").read_text())["artifacts"]
    _write(tmp_path, _template("same"), stack="Other", **first)
    with pytest.raises(
        LocalEndpointError, match="two endpoints are called 'same'; choose one with --stack"
    ):
        read_endpoints(tmp_path)
    assert [spec.stack for spec in read_endpoints(tmp_path, stack="Other")] == ["Other"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "manifest.json: does not exist; run"),
        ("{", r"manifest\.json: cannot be read as JSON"),
        ("{}", "no stack contains an AWS::SageMaker::Endpoint, got stacks none"),
    ],
)
def test_a_broken_manifest_is_reported(tmp_path: Path, content: str | None, words: str) -> None:
    """With what is wrong and the command that writes it."""
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(LocalEndpointError, match=rf"{words}.*`npx cdk synth`"):
        read_endpoints(tmp_path)


def test_instance_pools_are_read_in_order_of_priority(tmp_path: Path) -> None:
    """The variant may run on each of the types, so all of them count."""
    template = _template()
    variant = _variant(template)
    variant.pop("InstanceType", None)
    variant["InstancePools"] = [
        {"InstanceType": "ml.g5.xlarge", "Priority": 2},
        {"InstanceType": "ml.g6.xlarge", "Priority": 1},
    ]
    (spec,) = read_endpoints(_write(tmp_path, template))
    assert list(spec.variants[0].instance_types) == ["ml.g6.xlarge", "ml.g5.xlarge"]
