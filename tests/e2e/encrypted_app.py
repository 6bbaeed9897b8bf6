"""Stacks in which everything that can have a KMS key has one, and a queue whose key changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct, IConstruct
from files_app import INSTANCE_TYPE, write_models
from files_states import State

from constructs_triton import (
    AsyncInferenceConfig,
    CoreDump,
    DataCapture,
    ModelSource,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton.cdk import DeployTimeFunctions
from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys

STACK = "Encrypted"


class EncryptedStack(cdk.Stack):
    """One construct, each of whose data has a key of its own;
    ``data`` is what the construct declares.
    """

    def __init__(self, scope: Construct, id: str, *, models: Path, kind: str) -> None:
        super().__init__(scope, id)
        self.data: list[DataUnderKeys] = []
        self.source = ModelSource.from_directory(models)
        kinds: dict[str, Callable[[], None]] = {
            "option keys": lambda: self._single(self._option_keys()),
            "bucket keys": lambda: self._single(self._bucket_keys()),
            "previous keys": lambda: self._single(self._previous_keys()),
            "multi-model": self._many,
            "component": self._component,
            "capture": lambda: self._single(
                {"data_capture": DataCapture(bucket=self.bucket("Captured"))}
            ),
        }
        kinds[kind]()

    def key(self, name: str) -> kms.Key:
        return kms.Key(self, f"{name}Key", removal_policy=cdk.RemovalPolicy.DESTROY)

    def bucket(self, name: str, *, has_key: bool = True) -> s3.Bucket:
        key = self.key(name) if has_key else None
        return s3.Bucket(self, name, encryption_key=key, removal_policy=cdk.RemovalPolicy.DESTROY)

    def declared(self) -> set[tuple[str, str]]:
        """Each kind of data with the logical ID of each of its keys."""
        return {(each.name, logical_id(key)) for each in self.data for key in each.keys}

    def _option_keys(self) -> dict[str, Any]:
        """Buckets without a key, and options with one."""
        queue = AsyncInferenceConfig(
            bucket=self.bucket("Queue", has_key=False),
            encryption_key=self.key("Output"),
            success_topic=sns.Topic(self, "Success", master_key=self.key("Success")),
            error_topic=sns.Topic(self, "Error", master_key=self.key("Error")),
        )
        dump = CoreDump(bucket=self.bucket("Dumps", has_key=False), encryption_key=self.key("Dump"))
        captured = self.bucket("Captured", has_key=False)
        return {
            "async_inference": queue,
            "core_dump": dump,
            "data_capture": DataCapture(bucket=captured, encryption_key=self.key("Capture")),
            "encryption_key": self.key("Volume"),
        }

    def _bucket_keys(self) -> dict[str, Any]:
        """Buckets with a key, and options without one."""
        queue = AsyncInferenceConfig(
            bucket=self.bucket("Output"), input_bucket=self.bucket("Input")
        )
        return {"async_inference": queue, "core_dump": CoreDump(bucket=self.bucket("Dumps"))}

    def _previous_keys(self) -> dict[str, Any]:
        """No current key, so only the grants know the keys."""
        bucket, key = self.bucket("Queue", has_key=False), self.key("Previous")
        return {
            "async_inference": AsyncInferenceConfig(bucket=bucket, previous_encryption_keys=[key])
        }

    def _single(self, options: dict[str, Any]) -> None:
        repository = TritonModelRepository(self, "Models", source=self.source)
        endpoint = TritonEndpoint(
            self,
            "Endpoint",
            model_repository=repository,
            model="adder",
            instance_type=INSTANCE_TYPE,
            **options,
        )
        self.data = endpoint._encrypted_data
        if "async_inference" in options:
            caller = iam.Role(
                self, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")
            )
            endpoint.grant_invoke_async(caller)

    def _many(self) -> None:
        logs = self.key("Logs")
        DeployTimeFunctions.of(self).configure(log_encryption_key=logs)
        repository = TritonModelRepository(
            self,
            "Models",
            source=self.source,
            encryption_key=self.key("Models"),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        endpoint = TritonMultiModelEndpoint(
            self,
            "Endpoint",
            model_repository=repository,
            instance_type=INSTANCE_TYPE,
            encryption_key=self.key("Volume"),
        )
        models = repository._contents.prefix.keys.data
        self.data = [*endpoint._encrypted_data, models, DataUnderKeys("logs", [("", logs)])]

    def _component(self) -> None:
        key = self.key("Volume")
        TritonComponentEndpoint(
            self,
            "Endpoint",
            instance_type=INSTANCE_TYPE,
            min_instance_count=1,
            max_instance_count=1,
            encryption_key=key,
        )
        self.data = [DataUnderKeys("storage volumes", [("", key)])]


class QueueStack(cdk.Stack):
    """An asynchronous endpoint whose queue, topic and volume have one key, and a caller."""

    def __init__(
        self, scope: Construct, id: str, *, models: Path, key: str | None, previous: tuple[str, ...]
    ) -> None:
        super().__init__(scope, id)
        keys = {name: kms.Key(self, name) for name in ("Old", "New")}
        current = None if key is None else keys[key]
        given = [keys[name] for name in previous]
        queue = s3.Bucket(
            self, "Queue", encryption_key=current, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        endpoint = TritonEndpoint(
            self,
            "Endpoint",
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(models)
            ),
            model="adder",
            endpoint_name="adder",
            instance_type=INSTANCE_TYPE,
            encryption_key=current,
            async_inference=AsyncInferenceConfig(
                bucket=queue,
                success_topic=sns.Topic(self, "Done", master_key=current),
                previous_encryption_keys=given,
            ),
            data_capture=DataCapture(bucket=queue, previous_encryption_keys=given),
        )
        caller = iam.Role(self, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        endpoint.grant_invoke_async(caller)
        cdk.CfnOutput(self, "Bucket", value=queue.bucket_name)


def synthesize_callers(
    directory: Path, key: str, previous: tuple[str, ...], exported: tuple[str, ...]
) -> Path:
    """Write the assembly of a repository, and of a stack of callers that read its index,
    to a folder.
    """
    folder = directory / "-".join((key, *previous, "exports", *exported))
    app = cdk.App(outdir=str(folder), builtin_cloud_formation_validation=False)
    serving = cdk.Stack(app, "Serving")
    keys = {name: kms.Key(serving, name) for name in ("Old", "New")}
    repository = TritonModelRepository(
        serving,
        "Models",
        source=ModelSource.from_directory(_models(directory)),
        encryption_key=keys[key],
        previous_encryption_keys=[keys[name] for name in previous],
    )
    TritonMultiModelEndpoint(
        serving,
        "Endpoint",
        model_repository=repository,
        endpoint_name="many",
        instance_type=INSTANCE_TYPE,
    )
    principal = iam.ServicePrincipal("lambda.amazonaws.com")
    repository.grant_read_index(iam.Role(cdk.Stack(app, "Callers"), "Caller", assumed_by=principal))
    for name in exported:
        serving.export_value(keys[name].key_arn)
    app.synth()
    return folder


class KeptStack(cdk.Stack):
    """Data under a key that neither the asset bucket nor the bucket of
    captured data has any more.
    """

    def __init__(self, scope: Construct, id: str, *, models: Path, is_kept: bool) -> None:
        super().__init__(scope, id)
        old, new = kms.Key(self, "Old"), kms.Key(self, "New")
        captured = s3.Bucket(self, "Captured", encryption_key=new)
        TritonEndpoint(
            self,
            "Endpoint",
            model_repository=TritonModelRepository(
                self,
                "Models",
                source=ModelSource.from_directory(models),
                previous_encryption_keys=[old] if is_kept else [],
            ),
            model="adder",
            endpoint_name="adder",
            instance_type=INSTANCE_TYPE,
            data_capture=DataCapture(bucket=captured),
        )
        reader = iam.Role(self, "Reader", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        captured.grant_read(reader)
        if is_kept:
            old.grant_decrypt(reader)


def synthesize_kept(directory: Path, *, is_kept: bool) -> Path:
    """Write the assembly of the stack that keeps the permission for the old key, or not,
    to a folder.
    """
    folder = directory / f"kept-{is_kept}"
    app = cdk.App(outdir=str(folder), builtin_cloud_formation_validation=False)
    KeptStack(app, STACK, models=_models(directory), is_kept=is_kept)
    app.synth()
    return folder


def synthesize_queue(directory: Path, key: str | None, previous: tuple[str, ...] = ()) -> Path:
    """Write the assembly of a queue with these keys to a folder of their names."""
    folder = directory / "-".join((str(key), *previous))
    app = cdk.App(outdir=str(folder), builtin_cloud_formation_validation=False)
    QueueStack(app, STACK, models=_models(directory), key=key, previous=previous)
    app.synth()
    return folder


def synthesize(directory: Path, kind: str) -> EncryptedStack:
    """Write the assembly of a construct to ``directory / "out"``, and return its stack."""
    app = cdk.App(outdir=str(directory / "out"), builtin_cloud_formation_validation=False)
    stack = EncryptedStack(app, STACK, models=_models(directory), kind=kind)
    app.synth()
    return stack


def logical_id(construct: IConstruct) -> str:
    """The logical ID of the resource of a construct."""
    child: Any = construct.node.default_child
    return str(cdk.Stack.of(construct).get_logical_id(child))


def _models(directory: Path) -> Path:
    models = directory / "models"
    return models if models.exists() else write_models(models, State(label=1))
