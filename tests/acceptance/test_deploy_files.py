"""Models as files on a loopback AWS: what each deployment uploads and places,
and what the server loads.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from files_app import synthesize
from files_states import STACK, WEIGHTS_BYTES
from moto.s3.models import S3Backend
from programs import run_command
from stack_view import StackView
from triton_server import needs_server

from cdk_rehearse import SimulatedAccount
from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 2

SINGLE = "models/files/adder/"
FILES = {"adder/1/labels.txt", "adder/1/model.py", "adder/1/weights.bin", "adder/config.pbtxt"}
ENSEMBLE_FILES = {"twice/1/.triton-keep", "twice/config.pbtxt"}


@dataclass
class Account:
    """A loopback AWS that counts what is placed in the bucket of the models."""

    aws: SimulatedAccount
    assemblies: Path
    copied: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    @property
    def view(self) -> StackView:
        return StackView(self.aws, STACK)

    def deploy(self, state: str) -> str:
        """Deploy a state of the stack; returns the stack's status."""
        self.copied.clear()
        self.written.clear()
        return str(self.aws.deploy(self.assemblies / state, STACK).status)

    def uploads(self, state: str) -> int:
        """The bytes of model assets that ``cdk deploy`` would upload:
        those whose keys do not exist.
        """
        bucket = self._asset_bucket()
        listed = self.aws.client("s3").list_objects_v2(Bucket=bucket).get("Contents", [])
        present = {each["Key"] for each in listed}
        manifest = json.loads((self.assemblies / state / f"{STACK}.assets.json").read_text())
        return sum(
            (self.assemblies / state / each["source"]["path"]).stat().st_size
            for each in manifest["files"].values()
            for destination in each["destinations"].values()
            if "model file" in each["displayName"].lower()
            and destination["objectKey"] not in present
        )

    @property
    def unpacked(self) -> list[str]:
        """The names of the files that the function has placed from a zip. moto
        writes a copy like others.
        """
        return list((Counter(self.written) - Counter(self.copied)).elements())

    def _asset_bucket(self) -> str:
        buckets = self.aws.client("s3").list_buckets()["Buckets"]
        return next(str(each["Name"]) for each in buckets if each["Name"].startswith("cdk-"))

    def prefix(self, output: str) -> str:
        """The prefix of an endpoint's files."""
        source = self.view.model(output)["PrimaryContainer"]["ModelDataSource"]["S3DataSource"]
        assert (source["S3DataType"], source["CompressionType"]) == ("S3Prefix", "None")
        url: str = source["S3Uri"]
        return url

    def files(self, output: str) -> set[str]:
        """The paths of an endpoint's files."""
        return set(self.view.objects(self.prefix(output)))

    def label(self) -> bytes:
        """The small file that the endpoint of one model loads."""
        return self.view.object(self.prefix("SingleName") + "adder/1/labels.txt")


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """The account, with the first state deployed."""
    directory = synthesize(tmp_path_factory.mktemp("assemblies"), "first", "changed", "broken")
    with SimulatedAccount() as aws:
        aws.bootstrap()
        account = Account(aws, directory)
        copies = _counting("copy_object", account.copied, "dest_key_name", 2)
        with copies, _counting("put_object", account.written, "key_name", 1):
            yield account


def _counting(operation: str, names: list[str], parameter: str, position: int) -> Any:
    """Record the keys of the models that the function places."""
    original = getattr(S3Backend, operation)

    def counted(backend: Any, *arguments: Any, **more: Any) -> Any:
        key = str(more[parameter] if parameter in more else arguments[position])
        if key.startswith("models/") and not key.endswith("index.json"):
            names.append(key.rpartition("/")[2])
        return original(backend, *arguments, **more)

    return mock.patch.object(S3Backend, operation, counted)


def test_first_deployment_places_every_file(account: Account) -> None:
    """The large file is uploaded once and copied for each endpoint;
    the small ones come from the zips.
    """
    assert WEIGHTS_BYTES < account.uploads("first") < WEIGHTS_BYTES + 10_000
    assert account.deploy("first") == "CREATE_COMPLETE"
    assert account.files("SingleName") == FILES
    assert account.files("TwiceName") == FILES | ENSEMBLE_FILES
    assert account.copied == ["weights.bin"] * 2
    assert len(account.unpacked) == 3 + 5
    assert account.label() == b"1"


def test_changed_small_file_uploads_only_small_files(account: Account) -> None:
    """After a change of the label only the small files are uploaded;
    S3 itself copies the large one.
    """
    old = account.prefix("SingleName")
    assert 0 < account.uploads("changed") < 10_000
    assert account.deploy("changed") == "UPDATE_COMPLETE"
    assert account.prefix("SingleName") != old
    assert account.label() == b"2"
    assert account.copied == ["weights.bin"] * 2
    assert len(account.unpacked) == 3 + 5
    assert set(account.view.objects(old)) == FILES, "a rollback may need the old files"


@needs_server
def test_placed_files_are_served(account: Account) -> None:
    """The server loads the objects below the prefixes,
    also an ensemble whose version folder has no file.
    """
    ones = {"x": np.ones((1, 4), dtype=np.float32)}
    with LocalEndpoint.from_aws(account.aws.endpoint_url) as running:
        for output, tensor, added in (("SingleName", "y", 5 + 2), ("TwiceName", "z", 2 * (5 + 2))):
            client = TritonClient.for_endpoint(
                account.view.output(output), endpoint_url=running.endpoint_url
            )
            assert client.infer(ones)[tensor].tolist() == [[1 + added] * 4]


def test_status_names_the_files(account: Account) -> None:
    """The status of an endpoint has the folder of its files in place of an archive."""
    name = account.view.output("SingleName")
    printed = run_command("status", name, "--json", environment=account.aws.environment())
    prefix = account.prefix("SingleName")
    assert prefix in printed
    assert f'"adder": "{prefix.split("/")[-2]}/"' in printed


def test_failed_deployment_returns_to_the_old_files(account: Account) -> None:
    """A rollback copies nothing, and no moment of it takes a file or a
    permission from an endpoint.
    """
    prefixes = [account.prefix(output) for output in ("SingleName", "TwiceName")]
    assert WEIGHTS_BYTES < account.uploads("broken") < WEIGHTS_BYTES + 10_000
    assert account.deploy("broken") == "UPDATE_ROLLBACK_COMPLETE"
    assert [account.prefix(output) for output in ("SingleName", "TwiceName")] == prefixes
    assert account.label() == b"2"
    assert account.copied == ["weights.bin"] * 2, "of the new state only"
    assert len(account.unpacked) == 3 + 5
    assert account.aws.fleets.losses == []
    bucket, _, _ = prefixes[0].removeprefix("s3://").partition("/")
    index = json.loads(account.view.object(f"s3://{bucket}/{SINGLE}index.json"))
    current = prefixes[0].split("/")[-2] + "/"
    assert list(index["target_models"].values()) == [current]
    assert len(index["retired"]) == 2
    assert current not in index["retired"]


def test_unchanged_deployment_places_nothing(account: Account) -> None:
    """Deploying the running state again uploads and copies nothing."""
    assert account.uploads("changed") == 0
    assert account.deploy("changed") == "UPDATE_COMPLETE"
    assert (account.copied, account.unpacked) == ([], [])


def test_destroying_the_stack_deletes_the_files(account: Account) -> None:
    """The bucket with all files is deleted with the stack, since its removal policy says so."""
    stack = account.aws.destroy(STACK)
    assert stack.status == "DELETE_COMPLETE", stack.reason
    assert account.view.leftovers() <= {"log-group"}
