"""The repository construct: checks, archives, bucket and sync."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Annotations, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    add_repository,
    flat,
    make_app,
    make_stack,
    only,
    resources,
    statements,
    synthesize,
    write_model,
    write_repository,
)

from constructs_triton.cdk import InstanceType, TritonMultiModelEndpoint
from constructs_triton.cdk._model_sync import newest_python
from constructs_triton.errors import InvalidValueError, RepositoryError
from constructs_triton.model_sync import HANDLER_DIRECTORY


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_repository(tmp_path / "models")


def test_all_errors_at_once_and_nothing_is_added(path: Path) -> None:
    """Two broken models are both named, and the tree is as before."""
    write_model(path, "renamed", config='name: "other_name" backend: "python"')
    shutil.rmtree(path / "scale")
    stack = make_stack()
    with pytest.raises(RepositoryError) as caught:
        add_repository(stack, path)
    paths = {finding.path.split("/")[0] for finding in caught.value.findings}
    assert {"renamed", "pipeline"} <= paths
    assert stack.node.try_find_child("Models") is None


def test_target_models_are_the_models_one_can_ask_for(path: Path) -> None:
    """A step of an ensemble travels in the ensemble's archive and has no name of its own."""
    repository = add_repository(make_stack(), path)
    assert repository.target_models == {"other": "other.tar.gz", "pipeline": "pipeline.tar.gz"}


def test_repository_alone_adds_nothing_to_the_template(path: Path) -> None:
    """Bucket, function and archives appear only when an endpoint needs them."""
    stack = make_stack()
    cdk.CfnWaitConditionHandle(stack, "Handle")
    add_repository(stack, path)
    assert list(synthesize(stack)["Resources"]) == ["Handle"]


def test_archive_of_an_ensemble_holds_its_steps(path: Path) -> None:
    """The ensemble comes first, its steps follow, and models of no concern stay out."""
    archive = add_repository(make_stack(), path).archive_of("pipeline")
    assert archive.model_names == ("pipeline", "scale", "shift")
    assert archive.object_key == f"{archive.digest}.tar.gz"


def test_archive_lies_in_a_relocatable_assembly(path: Path, tmp_path: Path) -> None:
    """The assembly can be moved before it is deployed: its manifest names the archive relative to itself."""
    app = make_app(tmp_path / "cdk.out")
    stack = make_stack_in(app)
    cdk.CfnWaitConditionHandle(stack, "Handle")
    archive = add_repository(stack, path).archive_of("other")
    app.synth()
    moved = (tmp_path / "cdk.out").rename(tmp_path / "elsewhere")
    files = json.loads((moved / "Test.assets.json").read_text())["files"]
    (stored,) = [each for each in files.values() if each["source"]["path"].endswith(".tar.gz")]
    assert (moved / stored["source"]["path"]).stat().st_size == archive.size_bytes


def make_stack_in(app: cdk.App) -> cdk.Stack:
    return cdk.Stack(app, "Test")


def test_key_depends_on_content_alone(path: Path, tmp_path: Path) -> None:
    """The same models in another folder give the same object key, a changed file another."""
    shutil.copytree(path, tmp_path / "copy")
    first = add_repository(make_stack(), path).archive_of("other").object_key
    assert add_repository(make_stack(), tmp_path / "copy").archive_of("other").object_key == first
    with (tmp_path / "copy" / "other" / "1" / "model.py").open("a") as file:
        file.write("# changed\n")
    assert add_repository(make_stack(), tmp_path / "copy").archive_of("other").object_key != first


def test_unknown_model_is_named(path: Path) -> None:
    """A typo is answered with the name that was meant."""
    with pytest.raises(InvalidValueError, match=r'pipelin.*did you mean "pipeline"'):
        add_repository(make_stack(), path).archive_of("pipelin")


def test_bucket_is_closed_and_kept(path: Path) -> None:
    """The bucket is encrypted, closed to the public, open to TLS only, and outlives its stack."""
    stack = make_stack()
    assert add_repository(stack, path).bucket.bucket_name
    template = synthesize(stack)
    ((_, bucket),) = resources(template, "AWS::S3::Bucket").items()
    assert bucket["DeletionPolicy"] == "Retain"
    assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    assert "BucketEncryption" in bucket["Properties"]
    (deny,) = only(template, "AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def make_multi_model(path: Path, **props: Callable[[cdk.Stack], object]) -> cdk.Stack:
    stack = make_stack()
    given: dict[str, Any] = {key: make(stack) for key, make in props.items()}
    repository = add_repository(stack, path, **given)
    TritonMultiModelEndpoint(
        stack, "Endpoint", model_repository=repository, instance_type=InstanceType.of("ml.g4dn.xlarge")
    )
    return stack


def test_sync_names_every_archive(path: Path) -> None:
    """The custom resource says what goes where, in the words its handler reads."""
    template = synthesize(make_multi_model(path))
    properties = only(template, "Custom::TritonModelSync")
    assert properties["DestinationPrefix"] == "models/"
    assert [archive["TargetModel"] for archive in properties["Archives"]] == [
        "other.tar.gz",
        "pipeline.tar.gz",
    ]
    assert all(archive["SizeBytes"].isdecimal() for archive in properties["Archives"])
    assert "ServiceTimeout" in properties


def test_sync_may_do_no_more_than_it_does(path: Path) -> None:
    """It reads exactly the listed archives and writes below the prefix."""
    template = synthesize(make_multi_model(path))
    keys = {archive["SourceKey"] for archive in only(template, "Custom::TritonModelSync")["Archives"]}
    read, place = statements(template)["ReadArchives"], statements(template)["PlaceArchives"]
    assert {flat(resource).rsplit("/", 1)[1] for resource in read["Resource"]} == keys
    assert flat(place["Resource"]).endswith("/models/*")
    assert "s3:DeleteObject" not in place["Action"]


def test_sync_function_is_the_newest_python_and_its_log_ages(path: Path) -> None:
    """The runtime is chosen from what this CDK knows, and the log group does not grow for ever."""
    template = synthesize(make_multi_model(path))
    assert only(template, "AWS::Lambda::Function")["Runtime"] == newest_python().name
    assert only(template, "AWS::Logs::LogGroup")["RetentionInDays"] == 30
    known = [name for name in dir(lambda_.Runtime) if name.startswith("PYTHON_3_")]
    assert newest_python().name == f"python3.{max(int(name.split('_')[2]) for name in known)}"


def test_function_asset_holds_the_handler_alone(path: Path, tmp_path: Path) -> None:
    """Bytecode that lies beside the handler neither ships nor changes the asset."""
    assert HANDLER_DIRECTORY.joinpath("__init__.py").exists()
    app = make_app(tmp_path / "cdk.out")
    stack = make_stack_in(app)
    repository = add_repository(stack, path)
    repository.sync()
    app.synth()
    (asset,) = (tmp_path / "cdk.out").glob("asset.*")
    assert [file.name for file in asset.iterdir()] == ["handler.py"]


def test_given_bucket_is_used(path: Path) -> None:
    """A bucket of one's own takes the archives, under a prefix of one's own, with its key."""

    def bucket(stack: cdk.Stack) -> s3.IBucket:
        key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:eu-west-1:123456789012:key/k")
        return s3.Bucket.from_bucket_attributes(stack, "Own", bucket_name="own", encryption_key=key)

    template = synthesize(make_multi_model(path, bucket=bucket, prefix=lambda _: "triton/prod/"))
    assert resources(template, "AWS::S3::Bucket") == {}
    assert only(template, "Custom::TritonModelSync")["DestinationBucket"] == "own"
    assert (
        only(template, "AWS::SageMaker::Model")["PrimaryContainer"]["ModelDataUrl"] == "s3://own/triton/prod/"
    )
    assert {"EncryptArchives", "DecryptModels"} <= set(statements(template))


def test_removal_policy_and_key_of_the_bucket(path: Path) -> None:
    """The bucket that is made can be told to go, and to use a KMS key."""
    template = synthesize(
        make_multi_model(
            path,
            removal_policy=lambda _: RemovalPolicy.DESTROY,
            encryption_key=lambda stack: kms.Key(stack, "Key"),
        )
    )
    (bucket,) = resources(template, "AWS::S3::Bucket").values()
    assert bucket["DeletionPolicy"] == "Delete"
    assert "aws:kms" in str(bucket["Properties"]["BucketEncryption"])


def test_bucket_that_goes_takes_its_archives_along(path: Path) -> None:
    """A bucket that is not empty cannot be deleted: only then the function may, and does, remove archives."""
    kept = synthesize(make_multi_model(path))
    gone = synthesize(make_multi_model(path, removal_policy=lambda _: RemovalPolicy.DESTROY))
    assert "RemoveOnDelete" not in only(kept, "Custom::TritonModelSync")
    assert only(gone, "Custom::TritonModelSync")["RemoveOnDelete"] == "true"
    assert flat(statements(gone)["RemoveArchives"]["Resource"]).endswith("/models/*")


def test_policy_of_many_archives_stays_within_its_limit(tmp_path: Path) -> None:
    """A role's inline policies may have 10,240 characters: many archives are allowed by one pattern."""
    for index in range(21):
        write_model(tmp_path, f"model_{index}")
    template = synthesize(make_multi_model(tmp_path))
    assert len(only(template, "Custom::TritonModelSync")["Archives"]) == 21
    assert flat(statements(template)["ReadArchives"]["Resource"]).endswith("-eu-west-1/*.tar.gz")


@pytest.mark.parametrize("prefix", ["", "models", "/models/"])
def test_prefix_has_to_end_with_a_slash(path: Path, prefix: str) -> None:
    """SageMaker appends the target model to the prefix as it is."""
    with pytest.raises(InvalidValueError, match="prefix: must end with"):
        add_repository(make_stack(), path, prefix=prefix)


def test_warning_can_be_acknowledged(path: Path) -> None:
    """A warning of the check is shown under its code, and is gone once acknowledged."""
    stack = make_stack()
    config = (path / "other" / "config.pbtxt").read_text()
    (path / "other" / "config.pbtxt").write_text(config + 'output { name: "y" data_type: TYPE_FP32 dims: 4 }')
    repository = add_repository(stack, path)
    warnings = [str(entry.data) for entry in repository.node.metadata if entry.type == "aws:cdk:warning"]
    assert warnings
    code = warnings[0].rsplit("[ack: ", 1)[1].rstrip("]")
    assert code.startswith("constructs-triton:")
    Annotations.of(repository).acknowledge_warning(code)
    assert [entry for entry in repository.node.metadata if entry.type == "aws:cdk:warning"] == []
