"""The stack of the tests of encryption keys: archives and files below one prefix,
in a bucket with a key.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct
from files_app import INSTANCE_TYPE, add_single, fail_after, write_models
from files_states import State as Content

from constructs_triton import (
    ModelSource,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

STACK = "Keys"
ASSETS = "cdk-hnb659fds-assets-123456789012-us-east-1"


@dataclass(frozen=True)
class KeyState:
    """The key of the repository, the keys of the stack, and what else a deployment changes."""

    key: Literal["K1", "K2"] | None
    keys: tuple[str, ...] = ("K1", "K2")
    previous: tuple[str, ...] = ()
    label: int = 1
    removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.DESTROY
    is_broken: bool = False
    missing_archive: bool = False
    prune_after: cdk.Duration | None = None
    shares_bucket: bool = False
    """The bucket is the stack's own, with a second repository and its endpoint."""


class KeysStack(cdk.Stack):
    """A multi-model endpoint and an endpoint of files, with keys that the stack creates."""

    def __init__(self, scope: Construct, id: str, *, models: Path, state: KeyState) -> None:
        super().__init__(scope, id)
        keys = {
            name: kms.Key(self, name, removal_policy=cdk.RemovalPolicy.DESTROY)
            for name in state.keys
        }
        key = None if state.key is None else keys[state.key]
        given: dict[str, Any] = {"encryption_key": key, "removal_policy": state.removal_policy}
        shared = s3.Bucket(self, "Shared", **given) if state.shares_bucket else None
        place = given if shared is None else {"bucket": shared}
        source = ModelSource.from_directory(models)
        previous = [keys[name] for name in state.previous]
        repository = TritonModelRepository(
            self,
            "Models",
            source=source,
            prune_after=state.prune_after,
            previous_encryption_keys=previous,
            **place,
        )
        if shared is not None:
            others = TritonModelRepository(
                self,
                "Others",
                source=source,
                prefix="others/",
                previous_encryption_keys=previous,
                **place,
            )
            TritonMultiModelEndpoint(
                self, "OthersEndpoint", model_repository=others, instance_type=INSTANCE_TYPE
            )
        if state.missing_archive:
            bucket = s3.Bucket.from_bucket_name(self, "Given", ASSETS)
            repository.add_model("typo", ModelSource.from_bucket(bucket, "no-such-archive.tar.gz"))
        many = TritonMultiModelEndpoint(
            self, "Many", model_repository=repository, instance_type=INSTANCE_TYPE
        )
        single = add_single(self, repository)
        if state.is_broken:
            fail_after(many, single)
        cdk.CfnOutput(self, "Bucket", value=repository.bucket.bucket_name)


def synthesize(directory: Path, name: str, state: KeyState) -> Path:
    """Write the assembly of a state to a folder of its name below the directory."""
    models = write_models(directory / "models" / name, Content(label=state.label))
    app = cdk.App(outdir=str(directory / name), builtin_cloud_formation_validation=False)
    KeysStack(app, STACK, models=models, state=state)
    app.synth()
    return directory / name
