"""Rehearsals whose OLD comes from another version of the construct library."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shared_endpoint import Resources, policy, trust
from small_assembly import BUCKET, codes, endpoint, write_assembly

from cdk_rehearse import construct_libraries
from cdk_rehearse.construct_libraries import function_digests, library_handler
from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import Request, read_version
from constructs_triton.testing import rehearsed_functions
from constructs_triton_functions import CODE_DIRECTORY, CODE_FOLDER
from constructs_triton_functions.model_sync.manifest import FileManifest, ListedFile

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

#: The name of the folder of the functions in the other version.
FOLDER = "earlier_functions"
OTHER_VERSION = "functions of another version of the library, whose results are assumed"
MANIFEST = FileManifest.of(
    [ListedFile("classifier/1/model.onnx", 10, source_key="one.tar.gz")], None
)
ROLE = {"Fn::GetAtt": ["FunctionRole", "Arn"]}


def other_version(folder: Path, added: str) -> Path:
    """Write the functions of another version: those of this one in another folder,
    and a line more.
    """
    root = CODE_DIRECTORY / CODE_FOLDER
    for path in [*root.glob("*.py"), *root.glob("*/*.py")]:
        target = folder / FOLDER / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text() + added)
    return folder / FOLDER


def zipped(root: Path, name: str) -> bytes:
    """The code of a function, as the CDK packs it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in [*root.glob("*.py"), *(root / name).glob("*.py")]:
            archive.writestr(path.relative_to(root.parent).as_posix(), path.read_bytes())
    return buffer.getvalue()


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The functions of another version, which the library names as released."""
    root = other_version(tmp_path / "released", "")
    monkeypatch.setattr(rehearsed_functions, "RELEASED_FUNCTIONS", function_digests(root))
    caches = (construct_libraries._handlers, construct_libraries.library_handler)
    for each in caches:
        each.cache_clear()
    yield root
    for each in caches:
        each.cache_clear()


def function(root: Path, name: str) -> Resources:
    """A function that may do everything, with its code as an asset."""
    properties = {
        "Runtime": "python3.13",
        "Handler": f"{root.name}.{name}.handler.handler",
        "Role": ROLE,
        "Code": {"S3Bucket": BUCKET, "S3Key": f"{name}.zip"},
        "Timeout": 900,
        "MemorySize": 256,
    }
    role = {"AssumeRolePolicyDocument": trust("lambda")}
    own = policy(("*", "*"))
    own["Properties"] |= {"PolicyName": "own", "Roles": [{"Ref": "FunctionRole"}]}
    return {
        "FunctionRole": {"Type": "AWS::IAM::Role", "Properties": role},
        "FunctionPolicy": own,
        "Function": {"Type": "AWS::Lambda::Function", "Properties": properties},
    }


def custom(kind: str, **properties: Any) -> dict[str, Any]:
    token = {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}, **properties}
    return {"Type": kind, "Properties": token, "DependsOn": ["FunctionPolicy"]}


def files(root: Path, *, readable: str = "*", digest: str = "d1") -> Resources:
    """An endpoint whose model the function places as files,
    and a role that may read some of them.
    """
    resources = endpoint(readable="*")
    reads = (
        ("s3:GetObject", f"arn:aws:s3:::models-of-s/{readable}"),
        ("s3:ListBucket", "*"),
        ("ecr:*", "*"),
    )
    resources["Policy"] = policy(*reads)
    source = {
        "S3Uri": f"s3://models-of-s/models/{digest}/",
        "S3DataType": "S3Prefix",
        "CompressionType": "None",
    }
    resources["Model"]["Properties"]["PrimaryContainer"] |= {
        "ModelDataSource": {"S3DataSource": source}
    }
    del resources["Model"]["Properties"]["PrimaryContainer"]["ModelDataUrl"]
    resources["Model"]["DependsOn"] = ["Policy", "Files"]
    placed = custom(
        "Custom::TritonModelFiles",
        SourceBucket=BUCKET,
        ManifestKey="manifest.json",
        ManifestDigest=MANIFEST.digest,
        DestinationBucket={"Ref": "Models"},
        DestinationPrefix="models/",
        DestinationFolder=f"{digest}/",
        RemoveOnDelete="true",
    )
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "models-of-s"}}
    return {"Models": bucket, **function(root, "model_sync"), "Files": placed, **resources}


def assembly(folder: Path, root: Path, name: str, resources: Resources) -> Path:
    """An assembly with the code of a function and the list of files."""
    write_assembly(folder, resources)
    (folder / f"{name}.zip").write_bytes(zipped(root, name))
    (folder / "list.json").write_text(MANIFEST.to_json())
    path = folder / "S.assets.json"
    assets = json.loads(path.read_text())
    for source, key in ((f"{name}.zip", f"{name}.zip"), ("list.json", "manifest.json")):
        destination = {"current": {"bucketName": BUCKET, "objectKey": key}}
        assets["files"][key] = {
            "source": {"path": source, "packaging": "file"},
            "destinations": destination,
        }
    path.write_text(json.dumps(assets))
    return folder


def rehearsed(old: Path, new: Path) -> Rehearsal:
    return simulate(Request(read_version(old), read_version(new), {}, "none", 1))


def listed(found: Rehearsal) -> list[str]:
    """What is not simulated because of the functions."""
    return [note for note in found.not_simulated if "unction" in note or "Custom::" in note]


def test_functions_of_a_release_run(released: Path, tmp_path: Path) -> None:
    """OLD's function places the files with its own code,
    then the update runs that of this version.
    """
    old = assembly(tmp_path / "old", released, "model_sync", files(released))
    present = CODE_DIRECTORY / CODE_FOLDER
    new = assembly(tmp_path / "new", present, "model_sync", files(present, digest="d2"))
    found = rehearsed(old, new)
    assert (found.status, codes(found), listed(found)) == ({"S": "UPDATE_COMPLETE"}, set(), [])
    assert {step.logical_id for step in found.steps} >= {"Function", "Files", "Model", "Endpoint"}


def test_changed_byte_of_a_release_does_not_run(released: Path, tmp_path: Path) -> None:
    """The handler of a release belongs to its digest, not to the name of its folder."""
    code = zipped(released, "model_sync")
    assert library_handler(code) == f"{FOLDER}.model_sync.handler.handler"
    changed = other_version(tmp_path / "changed", "#")
    assert library_handler(zipped(changed, "model_sync")) is None


def test_results_of_an_unknown_version_are_assumed_and_named(tmp_path: Path) -> None:
    """Nothing is placed, the models count as there before and after the update,
    and the report says so.
    """
    other, present = other_version(tmp_path / "other", "#"), CODE_DIRECTORY / CODE_FOLDER
    old = assembly(tmp_path / "old", other, "model_sync", files(other))
    new = assembly(tmp_path / "new", present, "model_sync", files(present, digest="d2"))
    found = rehearsed(old, new)
    assert (found.status, codes(found)) == ({"S": "UPDATE_COMPLETE"}, set())
    assert listed(found)[-1] == f"{OTHER_VERSION} Function"
    assert found.deletion is not None
    assert found.deletion.succeeds


def test_assumed_models_need_the_permissions_of_others(tmp_path: Path) -> None:
    """A role that can no longer read what an unknown function would have placed is reported."""
    other = other_version(tmp_path / "other", "#")
    old, new = (
        assembly(tmp_path / name, other, "model_sync", files(other, readable=readable))
        for name, readable in (("old", "*"), ("new", "nothing"))
    )
    assert codes(rehearsed(old, new)) == {"rehearse-reader-loses-access"}


def test_place_that_no_function_has_is_not_assumed(tmp_path: Path) -> None:
    """A model outside the prefix of the custom resource is as absent as before."""
    other = other_version(tmp_path / "other", "#")
    old = assembly(tmp_path / "old", other, "model_sync", files(other))
    resources = files(other)
    resources["Files"]["Properties"]["DestinationPrefix"] = "elsewhere/"
    found = rehearsed(old, assembly(tmp_path / "new", other, "model_sync", resources))
    assert codes(found) == {"rehearse-reader-loses-access"}


def test_fleet_of_an_unknown_guard_has_its_maximum(tmp_path: Path) -> None:
    """The fleet before the update is as large as the targets that an unknown
    function would register.
    """
    other = other_version(tmp_path / "other", "#")
    target = custom(
        "Custom::TritonScalableTarget",
        ResourceId="endpoint/digits/variant/AllTraffic",
        MaxCapacity="4",
    )
    resources = {**endpoint(), **function(other, "scaling_guard"), "Target": target}
    old = assembly(tmp_path / "old", other, "scaling_guard", resources)
    changed = {**resources, **endpoint(archive="two.tar.gz")}
    found = rehearsed(old, assembly(tmp_path / "new", other, "scaling_guard", changed))
    assert [(fleet.before, fleet.peak) for fleet in found.instances] == [(4, 5)]


def test_each_released_function_has_a_function_of_today() -> None:
    """The rows of the table are digests, and handlers that the report recognizes by their names."""
    assert rehearsed_functions.RELEASED_FUNCTIONS
    for digest, handler in rehearsed_functions.RELEASED_FUNCTIONS.items():
        assert re.fullmatch("[0-9a-f]{64}", digest)
        assert construct_libraries.is_named_as_library(handler)
