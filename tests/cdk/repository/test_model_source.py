"""The sources of a repository's models, and how their models are checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    add_endpoint,
    add_ensemble,
    add_many,
    add_repository,
    archive_key,
    make_stack,
    only,
    primary_container,
    resources,
    statements,
    synthesize,
    write_model,
)
from cdk_apps import write_repository as write_pipeline

from constructs_triton import ModelSource, RepositoryCheck, TritonModelRepository
from constructs_triton.cdk.repository.model_repository import contents_of
from constructs_triton_core.errors import ArchiveError, InvalidValueError, RepositoryError
from triton_model_check.model_repository import ModelRepository, pack


def write_one(path: Path, name: str, **more: Any) -> Path:
    path.mkdir(parents=True)
    write_model(path, name, **more)
    return path


def pack_one(path: Path, tmp_path: Path) -> Path:
    repository = ModelRepository.from_directory(path)
    return pack(repository, list(repository.models), tmp_path / "packed").path


def serve_one(stack: cdk.Stack, repository: TritonModelRepository, model: str) -> dict[str, Any]:
    """Return the container of an endpoint that serves the model."""
    add_endpoint(stack, repository, model=model)
    return primary_container(synthesize(stack))


def serve_many(stack: cdk.Stack, repository: TritonModelRepository) -> list[dict[str, Any]]:
    """Return the manifest of a multi-model endpoint."""
    add_many(stack, repository, "Many")
    template = synthesize(stack)
    app = stack.node.root
    assert isinstance(app, cdk.App)
    key = only(template, "Custom::TritonModelSync")["ManifestKey"]
    rows: list[dict[str, Any]] = json.loads((Path(app.outdir) / key).read_text())["archives"]
    return rows


def bucket(stack: cdk.Stack) -> s3.IBucket:
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:eu-west-1:123456789012:key/k")
    return s3.Bucket.from_bucket_attributes(stack, "Given", bucket_name="given", encryption_key=key)


def test_named_models_are_added_to_those_of_the_source(stack: cdk.Stack, tmp_path: Path) -> None:
    """Models of several sources are under one prefix, each with its name and digest."""
    repository = add_repository(stack, write_pipeline(tmp_path / "models"))
    repository.add_model("tenant/net", ModelSource.from_directory(write_one(tmp_path / "a", "net")))
    packed = pack_one(write_one(tmp_path / "b", "elsewhere"), tmp_path)
    repository.add_model("given", ModelSource.from_archive(packed))
    repository.add_model(
        "stored", ModelSource.from_bucket(bucket(stack), "archives/stored-v3.tar.gz")
    )
    rows = {row["Name"]: row for row in serve_many(stack, repository)}
    assert list(rows) == ["given", "other", "pipeline", "stored", "tenant/net"]
    assert rows["given"]["SourceKey"] == packed.name
    assert (rows["stored"]["SourceKey"], rows["stored"]["GivenBucket"]) == (
        "archives/stored-v3.tar.gz",
        0,
    )
    assert all(row["TargetModel"] == repository.target_models[name] for name, row in rows.items())
    template = synthesize(stack)
    assert only(template, "Custom::TritonModelSync")["GivenBuckets"] == ["given"]
    assert {"ReadGiven", "DecryptGiven"} <= set(statements(template))


def test_archive_is_uploaded_unchanged(stack: cdk.Stack, tmp_path: Path) -> None:
    """A given archive is the asset, byte for byte, and its model has the name of its folder."""
    packed = pack_one(write_one(tmp_path / "a", "net"), tmp_path)
    repository = TritonModelRepository(stack, "Models")
    repository.add_model("resnet", ModelSource.from_archive(packed))
    key = archive_key(repository, "resnet")
    app = stack.node.root
    assert isinstance(app, cdk.App)
    assert (Path(app.asset_outdir) / key).read_bytes() == packed.read_bytes()
    container = serve_one(stack, repository, "resnet")
    assert container["Environment"]["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "net"


def test_models_of_a_repository_are_those_on_your_machine(stack: cdk.Stack, tmp_path: Path) -> None:
    """``models`` is the repository that was read; models in S3 cannot be read."""
    local = add_repository(stack, write_one(tmp_path / "a", "net"), "Local")
    assert list(local.models.models) == ["net"]
    source = ModelSource.from_bucket(bucket(stack), "a/net.tar.gz")
    stored = TritonModelRepository(stack, "Stored", source=source)
    with pytest.raises(
        InvalidValueError, match=r"^Test/Stored: its models cannot .*got the archive a/net\.tar\.gz"
    ):
        _ = stored.models
    with pytest.raises(InvalidValueError, match=r"^Test/Empty: .* got no source"):
        _ = TritonModelRepository(stack, "Empty").models


def test_archive_is_checked_like_a_folder(tmp_path: Path) -> None:
    """Errors of the models in an archive are raised, and so is a file that is not an archive."""
    path = write_one(tmp_path / "a", "net", config='name: "other" backend: "python"')
    packed = pack_one(path, tmp_path)
    with pytest.raises(RepositoryError, match=str(packed)):
        TritonModelRepository(make_stack(), "Models", source=ModelSource.from_archive(packed))
    (tmp_path / "no.tar.gz").write_bytes(b"no")
    for name in ("no.tar.gz", "absent.tar.gz"):
        with pytest.raises(ArchiveError, match=name):
            TritonModelRepository(
                make_stack(), "Models", source=ModelSource.from_archive(tmp_path / name)
            )


def test_stored_archive_is_loaded_from_its_bucket(stack: cdk.Stack, tmp_path: Path) -> None:
    """A single-model endpoint may read the archive, and nothing else in the bucket."""
    source = ModelSource.from_bucket(bucket(stack), "a/net.tar.gz")
    container = serve_one(stack, TritonModelRepository(stack, "Models", source=source), "net")
    assert container["ModelDataUrl"] == "s3://given/a/net.tar.gz"
    template = synthesize(stack)
    assert "given/a/net.tar.gz" in str(statements(template)["LoadModel"]["Resource"])
    assert "DecryptModel" in statements(template)


def test_prefix_is_served_uncompressed(stack: cdk.Stack, tmp_path: Path) -> None:
    """The model data is a prefix with ``CompressionType`` ``None``;
    multi-model endpoints refuse it.
    """
    repository = TritonModelRepository(
        stack, "Models", source=ModelSource.from_s3_prefix(bucket(stack), "llm/v1/")
    )
    container = serve_one(stack, repository, "llm")
    assert "ModelDataUrl" not in container
    assert container["ModelDataSource"]["S3DataSource"] == {
        "CompressionType": "None",
        "S3DataType": "S3Prefix",
        "S3Uri": "s3://given/llm/v1/",
    }
    condition = statements(synthesize(stack))["ListModel"]["Condition"]
    assert condition == {"StringLike": {"s3:prefix": ["llm/v1/*"]}}
    with pytest.raises(
        InvalidValueError, match=r"loads archives only, got the uncompressed models under llm/v1/"
    ):
        serve_many(stack, repository)


def test_builder_is_written_and_served(tmp_path: Path) -> None:
    """Any object that writes a repository into a folder is a source."""

    class Builder:
        def write_to(self, directory: Path) -> None:
            write_one(directory, "built")

    repository = TritonModelRepository(
        make_stack(), "Models", source=ModelSource.from_builder(Builder())
    )
    assert list(repository.target_models) == ["built"]


def test_models_that_cannot_be_added(stack: cdk.Stack, tmp_path: Path) -> None:
    """A used or malformed name, several models, and a model after the endpoint raise errors."""
    repository = add_repository(stack, write_pipeline(tmp_path / "models"))
    one = ModelSource.from_directory(write_one(tmp_path / "a", "net"))
    with pytest.raises(InvalidValueError, match='name: the repository already has a model "other"'):
        repository.add_model("other", one)
    for name in ("", "/net", "a b", "../net"):
        with pytest.raises(InvalidValueError, match="name: must be letters"):
            repository.add_model(name, one)
    with pytest.raises(InvalidValueError, match=r"must be one model.*got other, pipeline"):
        repository.add_model("two", ModelSource.from_directory(tmp_path / "models"))
    contents_of(repository).prefix.sync()
    with pytest.raises(
        InvalidValueError, match=r'model "net" is added after .*; call add_model before you create'
    ):
        repository.add_model("net", one)


@pytest.mark.parametrize(
    "make",
    [
        lambda given: ModelSource.from_bucket(given, "net.zip"),
        lambda given: ModelSource.from_bucket(given, "/net.tar.gz"),
        lambda given: ModelSource.from_s3_prefix(given, "net"),
    ],
)
def test_malformed_keys_and_prefixes_are_refused(make: Any) -> None:
    """A key without ``.tar.gz`` and a prefix without its slash raise errors."""
    with pytest.raises(InvalidValueError, match=r"(key|prefix): must"):
        make(bucket(make_stack()))


def test_multi_model_endpoint_needs_a_model(stack: cdk.Stack) -> None:
    """A repository without a model raises an error."""
    with pytest.raises(InvalidValueError, match="needs at least one model"):
        serve_many(stack, TritonModelRepository(stack, "Models"))


def test_checks_can_be_turned_off_or_acknowledged(tmp_path: Path) -> None:
    """An error is raised, unless its code is acknowledged or the check is off."""
    path = write_one(tmp_path / "a", "net", config='name: "other" backend: "python"')
    with pytest.raises(RepositoryError) as caught:
        add_repository(make_stack(), path)
    codes = [finding.code for finding in caught.value.findings]
    accepted = RepositoryCheck.on(acknowledge=codes)
    assert add_repository(make_stack(), path, check=accepted).target_models.keys() == {"net"}
    unchecked = add_repository(make_stack(), path, check=RepositoryCheck.off())
    assert contents_of(unchecked).warnings == []
    with pytest.raises(InvalidValueError, match='no check has this code, got "name-folde"'):
        RepositoryCheck.on(acknowledge=["name-folde"])


def test_ensemble_without_its_version_folder_is_served(stack: cdk.Stack, tmp_path: Path) -> None:
    """git drops the empty version folder of an ensemble, so packing adds it again."""
    path = write_pipeline(tmp_path / "models")
    (path / "pipeline" / "1").rmdir()
    add_ensemble(stack, path)
    assert len(resources(synthesize(stack), "AWS::SageMaker::Endpoint")) == 1


def test_bucket_can_be_versioned(stack: cdk.Stack, tmp_path: Path) -> None:
    """``versioned`` applies to the bucket that is created, and is refused for a given one."""
    path = write_one(tmp_path / "a", "net")
    serve_many(stack, add_repository(stack, path, versioned=True))
    (made,) = resources(synthesize(stack), "AWS::S3::Bucket").values()
    assert made["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}
    other = make_stack()
    with pytest.raises(InvalidValueError, match="versioned: cannot be combined with bucket"):
        add_repository(other, path, versioned=True, bucket=bucket(other))
