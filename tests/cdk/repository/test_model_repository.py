"""The repository construct: checks, archives, bucket and sync."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Annotations, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    add_endpoint,
    add_many,
    add_repository,
    archive_key,
    archived_models,
    flat,
    make_app,
    make_stack,
    only,
    primary_container,
    resources,
    statements,
    synthesize,
    warnings,
    write_model,
)
from constructs import Construct

from constructs_triton import TargetModelNaming, TritonModelRepository
from constructs_triton.cdk.repository.model_repository import contents_of
from constructs_triton_core.errors import InvalidValueError, RepositoryError


def test_all_errors_at_once_and_nothing_is_added(stack: cdk.Stack, path: Path) -> None:
    """The error names both broken models, and nothing is added to the tree."""
    write_model(path, "misspelt", config='backend: "python" max_batchsize: 1')
    shutil.rmtree(path / "scale")
    with pytest.raises(RepositoryError) as caught:
        add_repository(stack, path)
    paths = {finding.path.split("/")[0] for finding in caught.value.findings}
    assert {"misspelt", "pipeline"} <= paths
    assert stack.node.try_find_child("Models") is None


def test_name_that_differs_from_the_folder_is_for_multi_model_endpoints_only(path: Path) -> None:
    """Their front end replaces it, as ``check`` says, and a single-model endpoint does not."""
    write_model(path, "original")
    (path / "original").rename(path / "renamed")
    assert "renamed" in listed_names(make_multi_model(path))
    stack = make_stack()
    with pytest.raises(RepositoryError, match="layout-name-differs"):
        add_endpoint(stack, add_repository(stack, path), model="renamed")


def test_target_models_are_the_archives(path: Path) -> None:
    """A step is in the archive of its ensemble and has no target model."""
    repository = add_repository(make_stack(), path)
    digests = {name: archive_key(repository, name)[:8] for name in ("other", "pipeline")}
    assert repository.target_models == {
        name: f"{name}-{digest}.tar.gz" for name, digest in digests.items()
    }
    assert repository.target_models["other"].model_name == "other"


def test_models_are_those_of_the_folder(path: Path) -> None:
    """``models`` has every model of the folder, steps included, with its configuration."""
    repository = add_repository(make_stack(), path)
    assert list(repository.models.models) == ["other", "pipeline", "scale", "shift"]
    assert repository.models.model("pipeline").is_ensemble


def test_plain_target_models_warn(path: Path) -> None:
    """Names without the digest of the content give a warning that can be acknowledged."""
    repository = add_repository(make_stack(), path, target_model_naming=TargetModelNaming.PLAIN)
    assert repository.target_models == {"other": "other.tar.gz", "pipeline": "pipeline.tar.gz"}
    contents_of(repository).prefix.sync()
    assert acknowledgeable(repository) == {"constructs-triton:target-model-plain-names"}


def test_repository_alone_adds_nothing_to_the_template(stack: cdk.Stack, path: Path) -> None:
    """The bucket, the function and the archives are added when an endpoint needs them."""
    cdk.CfnWaitConditionHandle(stack, "Handle")
    add_repository(stack, path)
    assert list(synthesize(stack)["Resources"]) == ["Handle"]


def test_archive_of_an_ensemble_contains_its_steps(path: Path) -> None:
    """The ensemble is first, its steps follow, and other models are left out."""
    repository = add_repository(make_stack(), path)
    assert archived_models(repository, "pipeline") == ("pipeline", "scale", "shift")
    assert re.fullmatch(r"[0-9a-f]{32,}\.tar\.gz", archive_key(repository, "pipeline"))


def test_assembly_with_archives_can_be_moved(path: Path, tmp_path: Path) -> None:
    """The manifest of the assembly has the relative path of the archive."""
    app = make_app(tmp_path / "cdk.out")
    stack = make_stack_in(app)
    cdk.CfnWaitConditionHandle(stack, "Handle")
    repository = add_repository(stack, path)
    archive = contents_of(repository).locate("other", repository)
    app.synth()
    moved = (tmp_path / "cdk.out").rename(tmp_path / "elsewhere")
    files = json.loads((moved / "Test.assets.json").read_text())["files"]
    (stored,) = [each for each in files.values() if each["source"]["path"].endswith(".tar.gz")]
    assert (moved / stored["source"]["path"]).stat().st_size == archive.size_bytes


def make_stack_in(app: cdk.App) -> cdk.Stack:
    return cdk.Stack(app, "Test")


def synthesizer_of_the_stack(tmp_path: Path) -> list[cdk.Stack]:
    app = make_app(tmp_path / "cdk.out")
    return [
        cdk.Stack(app, name, synthesizer=cdk.DefaultStackSynthesizer(qualifier="own"))
        for name in "AB"
    ]


def synthesizer_of_the_app(tmp_path: Path) -> list[cdk.Stack]:
    shared = cdk.DefaultStackSynthesizer(qualifier="own")
    app = cdk.App(outdir=str(tmp_path / "cdk.out"), default_stack_synthesizer=shared)
    return [cdk.Stack(app, name) for name in "AB"]


def synthesizer_of_the_caller(tmp_path: Path) -> list[cdk.Stack]:
    app = make_app(tmp_path / "cdk.out")
    shared = cdk.CliCredentialsStackSynthesizer(qualifier="own")
    return [cdk.Stack(app, name, synthesizer=shared) for name in "AB"]


def test_given_synthesizer_is_not_bound_in_python(tmp_path: Path) -> None:
    """The reason for ``_bound_synthesizer``: remove that function when this test fails."""
    (stack, _) = synthesizer_of_the_stack(tmp_path)
    with pytest.raises(RuntimeError, match="must be bound to a Stack first"):
        stack.synthesizer.add_file_asset(
            source_hash="digest",
            packaging=cdk.FileAssetPackaging.FILE,
            file_name="file",
            display_name="File",
        )


@pytest.mark.parametrize(
    "make", [synthesizer_of_the_stack, synthesizer_of_the_app, synthesizer_of_the_caller]
)
def test_archives_are_assets_of_the_given_synthesizer(
    path: Path, tmp_path: Path, make: Callable[[Path], list[cdk.Stack]]
) -> None:
    """A qualifier of a stack or an app determines the bucket, without additional resources."""
    stacks = make(tmp_path)
    root = stacks[0].node.root
    assert isinstance(root, cdk.App)
    for stack in stacks:
        add_endpoint(stack, path, model="other")
        late = cdk.Stack(root, f"Late{stack.node.id}", synthesizer=stack.synthesizer)
        cdk.CfnWaitConditionHandle(late, "Handle")
    assembly = root.synth()
    for stack in stacks:
        template = assembly.get_stack_by_name(stack.stack_name).template
        url = flat(primary_container(template)["ModelDataUrl"])
        assert "cdk-own-assets-" in url
        files = json.loads((tmp_path / f"cdk.out/{stack.node.id}.assets.json").read_text())["files"]
        keys = {
            each["objectKey"] for file in files.values() for each in file["destinations"].values()
        }
        assert url.rsplit("/", 1)[1] in keys
        assert not resources(template, "AWS::CloudFormation::Stack")


@pytest.mark.parametrize("synthesizer", [cdk.BootstraplessSynthesizer, cdk.LegacyStackSynthesizer])
def test_synthesizer_that_cannot_name_an_archive_is_refused(path: Path, synthesizer: Any) -> None:
    """One has no bucket, and the other would give keys that SageMaker refuses."""
    stack = cdk.Stack(cdk.App(), "Test", synthesizer=synthesizer())
    with pytest.raises(InvalidValueError, match="synthesizer: cannot upload archives"):
        archive_key(add_repository(stack, path), "other")


def test_key_depends_on_content_alone(path: Path, tmp_path: Path) -> None:
    """The same models in another folder give the same object key,
    and a changed file another key.
    """
    shutil.copytree(path, tmp_path / "copy")
    first = archive_key(add_repository(make_stack(), path), "other")
    assert archive_key(add_repository(make_stack(), tmp_path / "copy"), "other") == first
    with (tmp_path / "copy" / "other" / "1" / "model.py").open("a") as file:
        file.write("# changed\n")
    assert archive_key(add_repository(make_stack(), tmp_path / "copy"), "other") != first


def make_multi_model(path: Path, **props: Callable[[cdk.Stack], object]) -> cdk.Stack:
    stack = make_stack()
    given: dict[str, Any] = {key: make(stack) for key, make in props.items()}
    add_many(stack, add_repository(stack, path, **given))
    return stack


def listed(stack: cdk.Stack, template: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of the custom resource from the assembly."""
    key = only(template, "Custom::TritonModelSync")["ManifestKey"]
    app = stack.node.root
    assert isinstance(app, cdk.App)
    manifest: dict[str, Any] = json.loads((Path(app.outdir) / key).read_text())
    return manifest


def listed_names(stack: cdk.Stack) -> list[str]:
    """Return the names of the models whose archives the assembly has."""
    return [archive["Name"] for archive in listed(stack, synthesize(stack))["archives"]]


def test_manifest_lists_every_archive(path: Path) -> None:
    """The manifest has each archive with its target model, and its digest is that of its bytes."""
    stack = make_multi_model(path)
    template = synthesize(stack)
    properties = only(template, "Custom::TritonModelSync")
    archives = listed(stack, template)["archives"]
    assert [archive["Name"] for archive in archives] == ["other", "pipeline"]
    for archive in archives:
        digest = archive["SourceKey"].removesuffix(".tar.gz")
        assert archive["TargetModel"] == f"{archive['Name']}-{digest[:8]}.tar.gz"
        assert archive["SizeBytes"] > 0
    assert properties["DestinationPrefix"] == "models/"
    assert properties["ManifestKey"] == f"{properties['ManifestDigest']}.json"
    assert properties["ServiceTimeout"] == "3600"


def test_template_grows_only_by_the_permission_for_each_model(tmp_path: Path) -> None:
    """A template of thirty models has thirty ARNs of archives more than that of one model."""
    sizes = []
    for count in (1, 30):
        for index in range(count):
            write_model(tmp_path / str(count), f"model_{index}")
        sizes.append(len(json.dumps(synthesize(make_multi_model(tmp_path / str(count))))))
    assert sizes[1] - sizes[0] <= 29 * 250


def test_sync_has_least_privilege(path: Path) -> None:
    """The function may read the listed archives, write below the prefix, and invoke itself."""
    stack = make_multi_model(path)
    template = synthesize(stack)
    keys = {archive["SourceKey"] for archive in listed(stack, template)["archives"]}
    keys.add(only(template, "Custom::TritonModelSync")["ManifestKey"])
    read, place = statements(template)["ReadArchives"], statements(template)["PlaceArchives"]
    assert {flat(resource).rsplit("/", 1)[1] for resource in read["Resource"]} == keys
    assert flat(place["Resource"]).endswith("/models/*")
    assert "s3:DeleteObject" not in str(statements(template))
    (function,) = resources(template, "AWS::Lambda::Function")
    assert statements(template)["ContinueItself"]["Resource"] == {"Fn::GetAtt": [function, "Arn"]}


def test_pruning_is_optional(path: Path) -> None:
    """Deleting unused archives adds a permission."""
    template = synthesize(make_multi_model(path, prune_after=lambda _: cdk.Duration.days(7)))
    assert only(template, "Custom::TritonModelSync")["PruneAfterSeconds"] == "604800"
    assert flat(statements(template)["PruneArchives"]["Resource"]).endswith("/models/*")


def test_function_asset_contains_only_its_modules(path: Path, tmp_path: Path) -> None:
    """Bytecode and the rest of the package are not in the asset."""
    app = make_app(tmp_path / "cdk.out")
    stack = make_stack_in(app)
    repository = add_repository(stack, path)
    contents_of(repository).prefix.sync()
    app.synth()
    (asset,) = (tmp_path / "cdk.out").glob("asset.*")
    names = {str(file.relative_to(asset)) for file in asset.rglob("*") if file.is_file()}
    all_share = ("__init__", "continuation", "endpoint_state", "response", "retries", "scaling")
    shared = {f"constructs_triton_functions/{module}.py" for module in all_share}
    modules = (
        "__init__ handler content encryption index key_failures manifest "
        "placement properties pruning file_placement"
    )
    own = {f"constructs_triton_functions/model_sync/{module}.py" for module in modules.split()}
    assert names == shared | own


def test_given_bucket_is_used(path: Path) -> None:
    """Your own bucket contains the archives, under your own prefix, encrypted with its key."""

    def bucket(stack: cdk.Stack) -> s3.IBucket:
        key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:eu-west-1:123456789012:key/k")
        return s3.Bucket.from_bucket_attributes(stack, "Own", bucket_name="own", encryption_key=key)

    template = synthesize(make_multi_model(path, bucket=bucket, prefix=lambda _: "triton/prod/"))
    assert resources(template, "AWS::S3::Bucket") == {}
    assert only(template, "Custom::TritonModelSync")["DestinationBucket"] == "own"
    assert (
        only(template, "AWS::SageMaker::Model")["PrimaryContainer"]["ModelDataUrl"]
        == "s3://own/triton/prod/"
    )
    assert {"EncryptArchives", "DecryptModels"} <= set(statements(template))


def test_removal_policy_and_key_of_the_bucket(path: Path) -> None:
    """The bucket can have a KMS key, and can be deleted with its stack."""
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


ASSET_KEY = "arn:aws:kms:eu-west-1:123456789012:key/assets"


def asset_key(stack: cdk.Stack) -> kms.IKey:
    return kms.Key.from_key_arn(stack, "AssetKey", ASSET_KEY)


def test_key_of_the_asset_bucket_may_be_used_by_its_readers(path: Path) -> None:
    """The sync function and a single-model endpoint's role may decrypt through S3 only."""
    stack = make_multi_model(path, asset_encryption_key=asset_key)
    repository = stack.node.find_child("Models")
    assert isinstance(repository, TritonModelRepository)
    add_endpoint(stack, repository, "One", model="other")
    template = synthesize(stack)
    granted = statements(template)
    for sid in ("DecryptArchives", "DecryptModel"):
        assert (granted[sid]["Action"], granted[sid]["Resource"]) == ("kms:Decrypt", ASSET_KEY)
        assert flat(granted[sid]["Condition"]["StringEquals"]["kms:ViaService"]).startswith("s3.")
    without = statements(synthesize(make_multi_model(path)))
    assert not {"DecryptArchives", "DecryptModel"} & set(without)


def test_deleted_bucket_is_emptied_first(path: Path) -> None:
    """Only for a bucket that is deleted with the stack may the function delete archives."""
    kept = synthesize(make_multi_model(path))
    gone = synthesize(make_multi_model(path, removal_policy=lambda _: RemovalPolicy.DESTROY))
    assert "RemoveArchives" not in statements(kept)
    assert "RemoveOnDelete" not in only(kept, "Custom::TritonModelSync")
    assert only(gone, "Custom::TritonModelSync")["RemoveOnDelete"] == "true"
    assert flat(statements(gone)["RemoveArchives"]["Resource"]).endswith("/models/*")


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"prefix": ""}, "prefix: must end with"),
        ({"prefix": "models"}, "prefix: must end with"),
        ({"prefix": "/models/"}, "prefix: must end with"),
        ({"prefix": None}, 'prefix: must be of type str, got None; write "models/"'),
        (
            {"prune_after": cdk.Duration.hours(1)},
            "prune_after: must be at least 1 day, got 3600 seconds",
        ),
        (
            {"prune_after": cdk.Duration.millis(500)},
            r"prune_after: must be a whole number of seconds, got 0\.5",
        ),
        (
            {"removal_policy": RemovalPolicy.SNAPSHOT},
            "removal_policy: buckets have no snapshots, got SNAPSHOT",
        ),
        (
            {"removal_policy": RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE},
            "got RETAIN_ON_UPDATE_OR_DELETE; use RETAIN or DESTROY",
        ),
    ],
)
def test_repository_refuses(path: Path, props: dict[str, Any], message: str) -> None:
    """A prefix that SageMaker could not append to, a short retention, and what
    no bucket has, are errors.
    """
    with pytest.raises(InvalidValueError, match=message):
        add_repository(make_stack(), path, **props)


def acknowledgeable(construct: Construct) -> set[str]:
    """Return the IDs of the warnings of a construct."""
    return {warning.rsplit("[ack: ", 1)[1].rstrip("]") for warning in warnings(construct)}


def test_warning_can_be_acknowledged(stack: cdk.Stack, path: Path) -> None:
    """A warning is annotated with its code, and removed when the code is acknowledged."""
    config = (path / "other" / "config.pbtxt").read_text()
    (path / "other" / "config.pbtxt").write_text(
        config + 'output { name: "y" data_type: TYPE_FP32 dims: 4 }'
    )
    repository = add_repository(stack, path)
    (code,) = acknowledgeable(repository)
    assert code.startswith("constructs-triton:")
    Annotations.of(repository).acknowledge_warning(code)
    assert acknowledgeable(repository) == set()
