"""Your own key encrypts everything: models, volumes, captured requests and core dumps.

cdk-nag's rules for AWS Solutions, HIPAA and NIST 800-53 report only the findings acknowledged
below.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton import (
    CoreDump,
    DataCapture,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"
# Acknowledged findings by the name of the rule. HIPAA and NIST use the same names with their
# prefixes.
WILDCARDS = {
    "*": "neither PutMetricData nor GetAuthorizationToken knows a resource",
    (
        "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>"
        ":log-group:/aws/sagemaker/Endpoints/*"
    ): "SageMaker names the log group after the endpoint",
}
PREFIXES = "one prefix of one bucket; what is below it changes with the models and the requests"
CALLED_BY_CLOUDFORMATION = (
    "CloudFormation alone calls the function, when it deploys, and sees it fail"
)
CONTROLS = {
    "IAMNoInlinePolicy": "each policy belongs to one role and is deleted with it",
    "S3BucketReplicationEnabled": "a deployment to another Region places the archives there",
    "S3BucketLoggingEnabled": "the bucket of the access logs has no logs of its own",
    "S3DefaultEncryptionKMS": "S3 delivers access logs to a bucket with S3's own key only",
    "CloudWatchLogGroupEncrypted": (
        "the function logs names of archives and nothing of their content"
    ),
    "LambdaConcurrency": CALLED_BY_CLOUDFORMATION,
    "LambdaDLQ": CALLED_BY_CLOUDFORMATION,
    "LambdaInsideVPC": "the function has S3 copy objects and touches nothing that is in a VPC",
}


class KmsStack(cdk.Stack):
    """One endpoint with several models and one with data capture, both with the same key."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        # Access logs are allowed by a bucket policy instead of an ACL, as in every app of ``cdk
        # init``.
        self.node.set_context("@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy", True)
        self.key = kms.Key(self, "Key", enable_key_rotation=True)
        logs = self._make_log_bucket()
        archives, written = self._make_bucket("Archives", logs), self._make_bucket("Written", logs)
        repository = TritonModelRepository(
            self,
            "Models",
            source=ModelSource.from_directory(MODELS / "catalog"),
            bucket=archives,
        )
        TritonMultiModelEndpoint(
            self,
            "Catalog",
            model_repository=repository,
            instance_type=InstanceType.of("ml.g5.xlarge"),
            encryption_key=self.key,
        )
        TritonEndpoint(
            self,
            "Sentiment",
            model_repository=repository,
            model="sentiment",
            instance_type=InstanceType.of("ml.c6i.xlarge"),
            encryption_key=self.key,
            data_capture=DataCapture(bucket=written, encryption_key=self.key),
            core_dump=CoreDump(bucket=written, encryption_key=self.key),
        )
        self._acknowledge(
            self._arn_of(archives, "models"),
            self._arn_of(written, "data-capture"),
            self._arn_of(written, "core-dumps"),
        )

    def _make_log_bucket(self) -> s3.Bucket:
        return s3.Bucket(
            self,
            "AccessLogs",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
        )

    def _make_bucket(self, id: str, logs: s3.Bucket) -> s3.Bucket:
        return s3.Bucket(
            self,
            id,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            server_access_logs_bucket=logs,
            server_access_logs_prefix=f"{id}/",
        )

    def _arn_of(self, bucket: s3.Bucket, prefix: str) -> str:
        resource = bucket.node.default_child
        assert isinstance(resource, s3.CfnBucket)
        return f"<{self.get_logical_id(resource)}.Arn>/{prefix}/*"

    def _acknowledge(self, *prefixes: str) -> None:
        wildcards = {**WILDCARDS, **dict.fromkeys(prefixes, PREFIXES)}
        reasons = {f"AwsSolutions-IAM5[Resource::{what}]": why for what, why in wildcards.items()}
        for rule, reason in CONTROLS.items():
            reasons |= {f"HIPAA.Security-{rule}": reason, f"NIST.800.53.R5-{rule}": reason}
        for rule, reason in reasons.items():
            cdk.Validations.of(self).acknowledge(cdk.Acknowledgment(id=rule, reason=reason))


app = cdk.App()
KmsStack(app, "Kms")
app.synth()
