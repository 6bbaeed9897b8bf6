"""The stacks of the questions about inference components."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from constructs_triton import (
    InstanceType,
    MetricsConfig,
    TritonComponentEndpoint,
    TritonInferenceComponent,
)

from .check_stack import CheckStack

_CPU, _GPUS = InstanceType.of("ml.m5.large"), InstanceType.of("ml.g4dn.12xlarge")
_CONFIG = """name: "inside"
backend: "python"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_STRING dims: 1 }
instance_group { kind: KIND_CPU }
"""
_INSIDE = """import os
import subprocess

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        shm = os.statvfs("/dev/shm")
        gpus = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, check=False
        ).stdout
        text = (
            f"/dev/shm {shm.f_frsize * shm.f_blocks >> 20} MiB, {gpus.count('GPU ')} GPUs visible, "
            f"variables {sorted(name for name in os.environ if 'PORT' in name)}"
        )
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([[text]], dtype=object))])
"""


class ComponentUpdates(CheckStack):
    """A component with another model in each release, and callers that may call only half of it."""

    def add_endpoints(self) -> None:
        endpoint = component_endpoint(self, _CPU, max_instance_count=3)
        component = TritonInferenceComponent(
            self,
            "Copies",
            endpoint=endpoint,
            model_repository=self.repository(constant=self.release),
            min_memory=cdk.Size.mebibytes(512),
            number_of_cpu_cores=1,
        )
        cdk.CfnOutput(self, "Component", value=component.inference_component_name)
        arns = {"Endpoint": endpoint.endpoint_arn, "Component": component.inference_component_arn}
        for name, arn in arns.items():
            caller = iam.Role(self, f"{name}Caller", assumed_by=iam.AccountRootPrincipal())
            caller.add_to_policy(
                iam.PolicyStatement(actions=["sagemaker:InvokeEndpoint"], resources=[arn])
            )
            cdk.CfnOutput(self, f"{name}CallerArn", value=caller.role_arn)


class ComponentConfigs(CheckStack):
    """A role for endpoint configurations that are created and deleted without an endpoint."""

    def add_endpoints(self) -> None:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
        cdk.CfnOutput(self, "RoleArn", value=role.role_arn)


class ComponentInside(CheckStack):
    """A component with one of four GPUs, whose model reports what it finds in its container."""

    def add_endpoints(self) -> None:
        endpoint = component_endpoint(
            self,
            _GPUS,
            max_instance_count=1,
            metrics_config=MetricsConfig(enable_enhanced_metrics=True),
        )
        component = TritonInferenceComponent(
            self,
            "Copies",
            endpoint=endpoint,
            model_repository=self.repository_of("inside", _CONFIG, _INSIDE),
            min_memory=cdk.Size.gibibytes(1),
            number_of_accelerator_devices=1,
        )
        cdk.CfnOutput(self, "Component", value=component.inference_component_name)
        cdk.CfnOutput(self, "LogGroup", value=component.log_group_name)


def component_endpoint(
    stack: CheckStack, instance_type: InstanceType, **options: Any
) -> TritonComponentEndpoint:
    """An endpoint for components, with its name as an output."""
    endpoint = TritonComponentEndpoint(
        stack, "Endpoint", instance_type=instance_type, min_instance_count=1, **options
    )
    cdk.CfnOutput(stack, "Name", value=endpoint.endpoint_name)
    return endpoint
