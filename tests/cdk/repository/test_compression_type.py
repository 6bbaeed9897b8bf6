"""Endpoints that load their models as files: resources, permissions, assets,
and what is refused.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    add_endpoint,
    add_ensemble,
    add_many,
    add_repository,
    flat,
    make_app,
    make_stack,
    only,
    only_variant,
    primary_container,
    resources,
    statements,
    synthesize,
    write_model,
    write_repository,
)
from stack_update import lost_grants

from constructs_triton import CompressionType, InstanceType, ModelSource, TritonModelRepository
from constructs_triton.cdk.endpoint.served_models import SingleModel
from constructs_triton.cdk.repository import staged_files
from constructs_triton_core.errors import ArchiveError, InvalidValueError
from constructs_triton_tools.local.server.unpacking import copy_files
from constructs_triton_tools.local.sources.assembly import read_endpoints
from triton_model_check.model_repository import ModelRepository, pack

NONE, GZIP = CompressionType.NONE, CompressionType.GZIP


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is large above 1,000 bytes."""
    monkeypatch.setattr(staged_files, "LARGE_FILE_BYTES", 1_000)


add = partial(add_endpoint, model=None, compression_type=NONE)


def write_files(path: Path, large: int = 1, small: int = 0) -> Path:
    write_model(path, "net")
    for number in range(large):
        (path / "net" / "1" / f"part{number:04d}.bin").write_bytes(b"%06d" % number * 200)
    for number in range(small):
        (path / "net" / "1" / f"vocabulary{number:04d}.txt").write_bytes(b"%06d" % number)
    return path


def test_model_data_are_a_prefix_of_the_content(stack: cdk.Stack, tmp_path: Path) -> None:
    """The model has the prefix with the digest, and depends on what places the files there."""
    add(stack, write_files(tmp_path))
    template = synthesize(stack)
    placed = only(template, "Custom::TritonModelFiles")
    folder = placed["DestinationPrefix"] + placed["DestinationFolder"]
    assert placed["DestinationPrefix"] == "models/files/net/"
    container = primary_container(template)
    source = container["ModelDataSource"]["S3DataSource"]
    assert (source["CompressionType"], source["S3DataType"]) == ("None", "S3Prefix")
    assert flat(source["S3Uri"]).endswith(f">/{folder}")
    assert "ModelDataUrl" not in container
    (model,) = resources(template, "AWS::SageMaker::Model").values()
    assert set(resources(template, "Custom::TritonModelFiles")) <= set(model["DependsOn"])


def test_roles_have_least_privilege(stack: cdk.Stack, tmp_path: Path) -> None:
    """The endpoint reads and lists its own folder;
    the function reads the assets and writes its prefix.
    """
    add(stack, write_files(tmp_path))
    template = synthesize(stack)
    found = statements(template)
    folder = only(template, "Custom::TritonModelFiles")["DestinationFolder"]
    listed = f"models/files/net/{folder}*"
    assert flat(found["LoadModels"]["Resource"]).endswith(f"/{listed}")
    assert found["LoadModels"]["Action"] == "s3:GetObject"
    assert found["ListModels"]["Action"] == "s3:ListBucket"
    assert found["ListModels"]["Condition"] == {"StringLike": {"s3:prefix": [listed]}}
    assert flat(found["PlaceArchives"]["Resource"]).endswith("/models/files/net/*")
    assert found["FindFiles"]["Condition"] == {"StringLike": {"s3:prefix": ["models/files/net/*"]}}
    read = [flat(each).rpartition("/")[2] for each in found["ReadArchives"]["Resource"]]
    assert [Path(key).suffix for key in read] == [".modelfile", ".zip", ".json"]
    assert not any("*" in key for key in read)
    assert not {"PruneArchives", "RemoveArchives"} & found.keys()


def test_nothing_in_the_template_grows_with_the_files(tmp_path: Path) -> None:
    """A model with hundreds of files has a template as long as one with thirty;
    policies included.
    """
    templates = []
    for number, (large, small) in enumerate([(30, 1), (60, 400)]):
        stack = make_stack()
        add(stack, write_files(tmp_path / str(number), large, small))
        templates.append(synthesize(stack))
    assert len({len(json.dumps(template)) for template in templates}) == 1
    read = [
        flat(each).rpartition("/")[2]
        for each in statements(templates[1])["ReadArchives"]["Resource"]
    ]
    assert read[0] == "*.modelfile"
    assert len(read) == 3


def test_large_files_are_assets_by_their_content(tmp_path: Path) -> None:
    """Equal files are one asset, whatever their models and paths; all small files are one zip."""
    write_files(tmp_path, large=2, small=50)
    (tmp_path / "net" / "1" / "again.bin").write_bytes(
        (tmp_path / "net" / "1" / "part0000.bin").read_bytes()
    )
    app = make_app(tmp_path / "out")
    stack = cdk.Stack(app, "Test")
    add(stack, tmp_path)
    app.synth()
    assets = json.loads((tmp_path / "out" / "Test.assets.json").read_text())["files"].values()
    names = [Path(each["source"]["path"]) for each in assets]
    suffixes = sorted(each.suffix for each in names if each.suffix in (".modelfile", ".zip"))
    assert suffixes == [".modelfile", ".modelfile", ".zip"]


@pytest.mark.parametrize("change", ["content", "files to archive", "archive to files"])
def test_update_takes_no_permission_away(tmp_path: Path, change: str) -> None:
    """While an update runs or rolls back, both contents can be loaded."""
    templates: list[dict[str, Any]] = []
    kinds = {
        "content": (NONE, NONE),
        "files to archive": (NONE, GZIP),
        "archive to files": (GZIP, NONE),
    }
    for kind in kinds[change]:
        stack = make_stack()
        path = tmp_path / str(len(templates))
        write_files(path, large=1 + len(templates))
        add(stack, path, compression_type=kind)
        templates.append(synthesize(stack))
    for before, after in pairwise([*templates, templates[0]]):
        assert lost_grants(before, after) == set()


def test_prune_after_and_removal_policy_apply(stack: cdk.Stack, tmp_path: Path) -> None:
    """They have the same meaning as for archives,
    and the function gets the permissions for them.
    """
    settings: dict[str, Any] = {
        "prune_after": cdk.Duration.days(2),
        "removal_policy": cdk.RemovalPolicy.DESTROY,
    }
    repository = add_repository(stack, write_files(tmp_path), **settings)
    add(stack, repository)
    template = synthesize(stack)
    placed = only(template, "Custom::TritonModelFiles")
    assert (placed["PruneAfterSeconds"], placed["RemoveOnDelete"]) == (
        str(2 * 24 * 60 * 60),
        "true",
    )
    assert {"PruneArchives", "RemoveArchives"} <= statements(template).keys()


def test_two_endpoints_share_the_files(stack: cdk.Stack, tmp_path: Path) -> None:
    """Endpoints of the same model have one resource that places it;
    an ensemble has one with its steps.
    """
    repository = add_repository(stack, write_repository(tmp_path), prefix="team/")
    for name in ("A", "B"):
        add(stack, repository, name, model="scale")
    add_ensemble(stack, repository, "C", compression_type=NONE)
    template = synthesize(stack)
    placed = resources(template, "Custom::TritonModelFiles").values()
    assert sorted(each["Properties"]["DestinationPrefix"] for each in placed) == [
        "team/files/pipeline/",
        "team/files/scale/",
    ]
    urls = [
        flat(each["Properties"]["PrimaryContainer"]["ModelDataSource"]["S3DataSource"]["S3Uri"])
        for each in resources(template, "AWS::SageMaker::Model").values()
    ]
    assert len(set(urls)) == 2


def test_local_run_gets_the_same_files(tmp_path: Path) -> None:
    """``local up`` copies the files from the assembly; what the server writes changes no asset."""
    write_files(tmp_path / "models", small=2)
    app = make_app(tmp_path / "out")
    add(cdk.Stack(app, "Test"), tmp_path / "models")
    app.synth()
    (spec,) = read_endpoints(tmp_path / "out")
    container = spec.variants[0].container
    assert not container.is_multi_model
    assert container.files is not None
    copy_files(container.files, tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(tmp_path / "models")
    before = contents(tmp_path / "out")
    for path in (tmp_path / "copy").rglob("*.bin"):
        path.write_bytes(b"overwritten")
    assert contents(tmp_path / "out") == before
    next((tmp_path / "out").glob("*.zip")).write_bytes(b"short")
    with pytest.raises(ArchiveError, match="is too short"):
        copy_files(container.files, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def packed(tmp_path: Path) -> ModelSource:
    write_model(tmp_path / "packed", "net")
    repository = ModelRepository.from_directory(tmp_path / "packed")
    return ModelSource.from_archive(pack(repository, ["net"], tmp_path / "archives").path)


def given_bucket(stack: cdk.Stack) -> s3.IBucket:
    return s3.Bucket.from_bucket_name(stack, "Given", "given")


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        (
            lambda _, path: packed(path),
            NONE,
            "got CompressionType.NONE; use ModelSource.from_directory",
        ),
        (
            lambda stack, _: ModelSource.from_bucket(given_bucket(stack), "a.tar.gz"),
            NONE,
            "cannot be changed for the archive a.tar.gz, got CompressionType.NONE; use",
        ),
        (
            lambda stack, _: ModelSource.from_s3_prefix(given_bucket(stack), "llm/"),
            GZIP,
            "the uncompressed models under llm/, got CompressionType.GZIP; remove compression_type",
        ),
        (
            lambda *_: ModelSource.from_model_package("ranking"),
            NONE,
            "the model package ranking, got CompressionType.NONE; remove compression_type",
        ),
        (
            lambda _, path: ModelSource.from_directory(write_files(path)),
            "None",
            "CompressionType.NONE",
        ),
    ],
)
def test_sources_that_cannot_be_changed(tmp_path: Path, source: Any, kind: Any, words: str) -> None:
    """What is in S3 already, or is an archive, stays what it is; a string is not a type."""
    stack = make_stack()
    repository = TritonModelRepository(stack, "Models", source=source(stack, tmp_path))
    with pytest.raises(InvalidValueError, match=words):
        add(stack, repository, model="net", compression_type=kind)
    assert stack.node.try_find_child("Endpoint") is None


def test_matching_compression_types_of_sources_in_s3_are_accepted(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """A prefix is NONE and an archive is GZIP, so saying so changes nothing."""
    prefix = ModelSource.from_s3_prefix(given_bucket(stack), "llm/")
    for source, kind in ((prefix, NONE), (packed(tmp_path), GZIP)):
        repository = TritonModelRepository(stack, f"{kind.name}Models", source=source)
        add(stack, repository, kind.name, model="net", compression_type=kind)
    assert resources(synthesize(stack), "Custom::TritonModelFiles") == {}


def test_multi_model_endpoint_needs_archives(stack: cdk.Stack, tmp_path: Path) -> None:
    """The message says what to use instead."""
    with pytest.raises(
        InvalidValueError, match="compression_type: not supported on multi-model endpoints"
    ):
        add_many(stack, write_files(tmp_path), compression_type=NONE)


def test_repository_in_another_region_is_refused(tmp_path: Path) -> None:
    """SageMaker reads files from its own Region, so the repository's bucket must be there."""
    app = make_app()
    first, second = (
        cdk.Stack(app, region, env=cdk.Environment(account="123456789012", region=region))
        for region in ("eu-west-1", "us-east-1")
    )
    repository = add_repository(first, write_files(tmp_path))
    with pytest.raises(
        InvalidValueError, match=r"endpoint with CompressionType\.NONE, aws://.*us-east-1"
    ):
        add(second, repository)


def test_given_bucket_in_another_region_is_refused() -> None:
    """A bucket of another Region that the user gives is an error too;
    one of an unknown Region is not.
    """
    stack = cdk.Stack(
        make_app(), "Test", env=cdk.Environment(account="123456789012", region="eu-west-1")
    )
    for region, is_refused in (("us-east-1", True), ("eu-west-1", False), (None, False)):
        bucket = s3.Bucket.from_bucket_attributes(
            stack, f"B{region}", bucket_name="models", region=region
        )
        repository = TritonModelRepository(stack, f"Models{region}", bucket=bucket)
        served = SingleModel(repository, "any", compression_type=NONE)
        error = pytest.raises(
            InvalidValueError, match=r"Region .*, eu-west-1, got us-east-1; use a bucket in"
        )
        with error if is_refused else nullcontext():
            served.check_scope(stack)


def test_names_are_checked_before_anything_is_added(stack: cdk.Stack, tmp_path: Path) -> None:
    """A path that does not fit into an S3 key is an error, and the id can be used again."""
    write_files(tmp_path)
    deep = tmp_path / "net" / "1" / "/".join(["a" * 200] * 5)
    deep.mkdir(parents=True)
    (deep / "model.txt").write_text("deep")
    with pytest.raises(ArchiveError, match="S3 allows 1024; shorten the path"):
        add(stack, tmp_path)
    assert stack.node.try_find_child("Endpoint") is None


def test_lost_execute_permission_is_a_warning(stack: cdk.Stack, tmp_path: Path) -> None:
    """Objects have no permissions, so a stub that the model brings could not be started."""
    write_files(tmp_path)
    stub = tmp_path / "net" / "triton_python_backend_stub"
    stub.write_bytes(b"\x7fELF")
    stub.chmod(0o755)
    endpoint = add(stack, tmp_path)
    (warning,) = [
        each.data for each in endpoint.node.metadata if "files-not-executable" in str(each.data)
    ]
    assert "lose theirs: net/triton_python_backend_stub" in warning


def test_volume_has_room_for_the_files_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive and its content need the volume together; files need it once."""
    run = staged_files._Staging.run
    size = 40 << 30
    monkeypatch.setattr(
        staged_files._Staging, "run", lambda self: replace(run(self), size_bytes=size)
    )
    stack = make_stack()
    add(stack, write_files(tmp_path), instance_type=InstanceType.of("ml.m5.xlarge"))
    variant = only_variant(synthesize(stack))
    assert variant["VolumeSizeInGB"] == 45
    assert variant["ModelDataDownloadTimeoutInSeconds"] == 60 * (10 + size // (3 * 10**9))
