"""A user's code that type checkers accept."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from constructs_triton import (
    AsyncInferenceConfig,
    Deployment,
    EndpointOptions,
    InferenceAmi,
    InstanceType,
    ITritonEndpoint,
    ModelSource,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonImage,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVariant,
    VariantOptions,
)

GPU = InstanceType.of("ml.g5.xlarge")


def add_endpoints(
    stack: cdk.Stack, vpc: ec2.IVpc, role: iam.IRole, key: kms.IKey, bucket: s3.IBucket
) -> None:
    """Every kind of endpoint, with constructs, strings, numbers and durations as values."""
    models = TritonModelRepository(stack, "Models", source=ModelSource.from_directory("models"))
    environment: Mapping[str, str] = {"SAGEMAKER_TRITON_THREAD_COUNT": "8"}
    TritonEndpoint(stack, "Least", model_repository=models, model="digits", instance_type=GPU)
    TritonEnsembleEndpoint(
        stack,
        "Ensemble",
        model_repository=models,
        ensemble="pipeline",
        instance_type=GPU,
        image=TritonImage.dlc("26.05"),
        environment=environment,
        initial_instance_count=2,
        initial_variant_weight=0.5,
        inference_ami_version=InferenceAmi.of("al2023-ami-sagemaker-inference-gpu-4-1"),
        volume_size=cdk.Size.gibibytes(50),
        model_data_download_timeout=cdk.Duration.minutes(20),
        routing_strategy="RANDOM",
        vpc=vpc,
        role=role,
        encryption_key=key,
        async_inference=AsyncInferenceConfig(bucket=bucket),
        deployment=Deployment.all_at_once(),
        scaling_guard=True,
        verify_update=True,
        removal_policy=cdk.RemovalPolicy.RETAIN,
    )
    TritonMultiModelEndpoint(
        stack,
        "Many",
        model_repository=models,
        instance_type=GPU,
        environment=TritonEnvironment(thread_count=8),
    )


def add_variants(
    stack: cdk.Stack, models: TritonModelRepository, names: list[str]
) -> ITritonEndpoint:
    """Variants from a list, with properties that several of them share,
    and an endpoint without an AMI.
    """
    shared: VariantOptions = {"enable_ssm_access": True, "inference_ami_version": None}
    options: EndpointOptions = {
        "instance_type": GPU,
        "variants": [TritonVariant(variant_name=name, model="digits", **shared) for name in names],
        "inference_ami_version": None,
    }
    return TritonEndpoint(stack, "Variants", model_repository=models, model="digits", **options)
