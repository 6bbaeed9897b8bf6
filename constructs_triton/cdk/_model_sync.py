"""The deploy-time function that places archives under a repository's prefix, and its custom resource."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from aws_cdk import Aws, CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk._archive_assets import ModelArchive
from constructs_triton.model_sync import HANDLER, HANDLER_DIRECTORY, RESOURCE_TYPE

__all__ = ["ModelSync", "ModelSyncFunction", "newest_python"]

_SINGLETON_ID = "ConstructsTritonModelSync"
_MOST_NAMED_ARCHIVES = 20
"""Each takes 140 of the 10,240 characters of inline policies that IAM allows a role."""
_TIMEOUT_MINUTES = 15  # AWS Lambda's maximum


def newest_python() -> lambda_.Runtime:
    """The newest Python that this release of the CDK knows, so that the function ages with the CDK."""
    minors = (re.fullmatch(r"PYTHON_3_(\d+)", name) for name in dir(lambda_.Runtime))
    newest = max(int(match[1]) for match in minors if match)
    return cast(lambda_.Runtime, getattr(lambda_.Runtime, f"PYTHON_3_{newest}"))


class ModelSyncFunction(Construct):
    """The function, one for all repositories of a stack; what it may touch is granted by each of them."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.log_group = logs.LogGroup(self, "LogGroup", retention=logs.RetentionDays.ONE_MONTH)
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.log_group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Resource",
            description="Copies Triton model archives inside S3 (constructs-triton)",
            runtime=newest_python(),
            handler=HANDLER,
            # Only the handler: the folder's bytecode and package files would change the asset's hash.
            code=lambda_.Code.from_asset(str(HANDLER_DIRECTORY), exclude=["*", "!handler.py"]),
            timeout=Duration.minutes(_TIMEOUT_MINUTES),
            memory_size=512,
            role=self.role,
            log_group=self.log_group,
        )

    @classmethod
    def of(cls, scope: Construct) -> ModelSyncFunction:
        """The function of the stack that ``scope`` is in, made when first asked for."""
        stack = Stack.of(scope)
        existing = stack.node.try_find_child(_SINGLETON_ID)
        return existing if isinstance(existing, cls) else cls(stack, _SINGLETON_ID)


class ModelSync(Construct):
    """Keeps ``archives`` under ``prefix`` of ``bucket``: file name to archive.

    What uses the prefix depends on this construct, so that no model is asked for before it is there. The
    archives outlive it unless ``remove_on_delete``.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        bucket: s3.IBucket,
        prefix: str,
        archives: Mapping[str, ModelArchive],
        remove_on_delete: bool = False,
    ) -> None:
        super().__init__(scope, id)
        sync_function = ModelSyncFunction.of(self)
        statements = _statements(bucket, prefix, list(archives.values()))
        properties = _properties(bucket, prefix, archives)
        if remove_on_delete:
            statements.append(_removal_statement(bucket, prefix))
            properties["RemoveOnDelete"] = "true"
        policy = iam.Policy(self, "Policy", statements=statements, roles=[sync_function.role])
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            service_token=sync_function.function.function_arn,
            service_timeout=Duration.minutes(_TIMEOUT_MINUTES + 1),
            properties=properties,
        )
        self.resource.node.add_dependency(policy)


def _properties(bucket: s3.IBucket, prefix: str, archives: Mapping[str, ModelArchive]) -> dict[str, object]:
    source_bucket = next(iter(archives.values())).bucket_name
    return {
        "SourceBucket": source_bucket,
        "DestinationBucket": bucket.bucket_name,
        "DestinationPrefix": prefix,
        "Archives": [
            {
                "SourceKey": archive.object_key,
                "TargetModel": target_model,
                "SizeBytes": str(archive.size_bytes),
            }
            for target_model, archive in archives.items()
        ],
    }


def _statements(
    bucket: s3.IBucket, prefix: str, archives: Sequence[ModelArchive]
) -> list[iam.PolicyStatement]:
    statements = [
        iam.PolicyStatement(
            sid="ReadArchives",
            actions=["s3:GetObject"],
            resources=_source_arns(archives),
        ),
        iam.PolicyStatement(
            sid="PlaceArchives",
            # GetObject verifies what was placed; the rest belongs to copies above 5 GB.
            actions=["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"],
            resources=[bucket.arn_for_objects(f"{prefix}*")],
        ),
    ]
    if bucket.encryption_key is not None:
        statements.append(_key_statement(bucket.encryption_key.key_arn))
    return statements


def _source_arns(archives: Sequence[ModelArchive]) -> list[str]:
    if len(archives) > _MOST_NAMED_ARCHIVES:
        return [f"arn:{Aws.PARTITION}:s3:::{archives[0].bucket_name}/*.tar.gz"]
    return sorted({archive.object_arn for archive in archives})


def _removal_statement(bucket: s3.IBucket, prefix: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid="RemoveArchives",
        actions=["s3:DeleteObject"],
        resources=[bucket.arn_for_objects(f"{prefix}*")],
    )


def _key_statement(key_arn: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid="EncryptArchives",
        actions=["kms:Decrypt", "kms:GenerateDataKey"],
        resources=[key_arn],
        conditions={"StringEquals": {"kms:ViaService": f"s3.{Aws.REGION}.{Aws.URL_SUFFIX}"}},
    )
