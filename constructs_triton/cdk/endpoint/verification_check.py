"""Sends recorded requests to an endpoint at the end of a deployment.

``constructs_triton.custom_resource_handlers.verification.handler`` is the function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.custom_resources.function import DeployFunction, FunctionDefinition
from constructs_triton.cdk.options.verification import Verification
from constructs_triton.cdk.repository.archive_assets import REQUESTS_LABEL, StackAssets, label_of
from constructs_triton.cdk.repository.loaded_models import decrypt_statements
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.custom_resource_handlers.verification import VERIFICATION_TYPE

if TYPE_CHECKING:
    from constructs_triton.cdk.endpoint.new_endpoint import NewEndpoint

__all__ = ["VerificationCheck", "VerificationFunction", "verify_responses"]


class VerificationFunction(DeployFunction):
    """The function. Each endpoint that is verified has its own."""

    DEFINITION = FunctionDefinition(
        description="Sends recorded requests to an endpoint after a deployment (constructs-triton)",
        folder="verification",
        timeout_seconds=14 * 60,
        memory_mib=512,
    )


class VerificationCheck(Construct):
    """A custom resource that sends the requests after each deployment that changes what is served.

    ``target_models`` maps the names of models to archives. They change with the models, so new content of a
    multi-model endpoint is verified too. ``decrypt`` is the permission to decrypt the requests.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        verification: Verification,
        endpoint: sagemaker.CfnEndpoint,
        endpoint_config: sagemaker.CfnEndpointConfig,
        variants: Sequence[str],
        target_models: Mapping[str, str],
        decrypt: Sequence[iam.PolicyStatement] = (),
    ) -> None:
        super().__init__(scope, id)
        function = VerificationFunction(self, "Function")
        text = verification.compiled()
        digest = sha256(text.encode()).hexdigest()
        asset = StackAssets(self).add_json(text, digest, label_of(REQUESTS_LABEL, scope))
        self.resource = function.add_custom_resource(
            self,
            resource_type=VERIFICATION_TYPE,
            statements=[*_statements(self, endpoint, asset.bucket_name, asset.object_key), *decrypt],
            properties={
                "EndpointName": endpoint.attr_endpoint_name,
                "EndpointConfigName": endpoint_config.attr_endpoint_config_name,
                "RequestsBucket": asset.bucket_name,
                "RequestsKey": asset.object_key,
                "TargetModels": dict(target_models),
                "Variants": list(variants),
            },
        )


def verify_responses(
    endpoint: NewEndpoint, verification: Verification | None, repository: TritonModelRepository
) -> None:
    """Add the check to an endpoint that has the property."""
    if verification is None:
        return
    VerificationCheck(
        endpoint,
        "Verification",
        verification=verification,
        endpoint=endpoint.cfn_endpoint,
        endpoint_config=endpoint.cfn_endpoint_config,
        variants=[each.variant_name for each in endpoint.variants],
        target_models=repository.target_models if endpoint.is_multi_model else {},
        decrypt=decrypt_statements("DecryptRequests", repository.asset_encryption_key),
    )


def _statements(
    scope: Construct, endpoint: sagemaker.CfnEndpoint, bucket_name: str, key: str
) -> list[iam.PolicyStatement]:
    return [
        iam.PolicyStatement(
            sid="CallEndpoint",
            actions=["sagemaker:InvokeEndpoint"],
            resources=[endpoint.attr_endpoint_arn],
        ),
        iam.PolicyStatement(
            sid="ReadRequests",
            actions=["s3:GetObject"],
            resources=[f"arn:{Aws.PARTITION}:s3:::{bucket_name}/{key}"],
        ),
        # During a rollback nothing is sent.
        iam.PolicyStatement(
            sid="ReadStackStatus",
            actions=["cloudformation:DescribeStacks"],
            resources=[Stack.of(scope).stack_id],
        ),
    ]
