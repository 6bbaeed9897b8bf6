"""Two ensembles with their own copies on one GPU instance, which stops while there are no requests.

cdk-nag's rules for AWS Solutions, HIPAA and NIST 800-53 report only the findings acknowledged
below.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonComponentEndpoint,
    TritonInferenceComponent,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"
# Acknowledged findings by the name of the rule. HIPAA and NIST use the same names with their
# prefixes.
LOGS = "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:/aws/sagemaker"
WILDCARDS = {
    "*": "PutMetricData and GetAuthorizationToken support no resource",
    f"{LOGS}/Endpoints/*": "SageMaker names the log group after the endpoint",
    f"{LOGS}/InferenceComponents/*": "SageMaker names the log groups after the components",
}
CONTROLS = {
    "IAMNoInlinePolicy": "each policy belongs to one role and is deleted with it",
    "SageMakerEndpointConfigurationKMSKeyConfigured": (
        "the hardware encrypts the local NVMe of ml.g5"
    ),
}


class SharedGpusStack(cdk.Stack):
    """Reads handwritten digits and watches sensors, each with its own GPUs of an ml.g5.12xlarge."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        endpoint = TritonComponentEndpoint(
            self,
            "Shared",
            instance_type=InstanceType.of("ml.g5.12xlarge"),
            min_instance_count=0,
            # One instance has the GPUs of all copies. A second one starts if an update finds it
            # busy.
            max_instance_count=2,
        )
        for name in ("digits", "alerts"):
            self.add_component(endpoint, name)
        self._acknowledge()

    def add_component(self, endpoint: TritonComponentEndpoint, name: str) -> None:
        """Add an ensemble that has one of the four GPUs, and two while there are many requests."""
        source = ModelSource.from_directory(MODELS / name)
        component = TritonInferenceComponent(
            self,
            name.capitalize(),
            endpoint=endpoint,
            model_repository=TritonModelRepository(
                self, f"{name.capitalize()}Models", source=source
            ),
            ensemble=name,
            # Not a limit: SageMaker only places a copy where this much is left.
            min_memory=cdk.Size.gibibytes(8),
            number_of_accelerator_devices=1,
        )
        # With a minimum of 0, a request to a sleeping component starts its first copy.
        scaling = component.auto_scale_copy_count(min_capacity=0, max_capacity=2)
        scaling.scale_on_concurrent_requests_per_copy("Requests", target_concurrent_requests=4)
        caller = iam.Role(
            self,
            f"{name.capitalize()}Caller",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        )
        component.grant_invoke(caller)
        cdk.CfnOutput(
            self, f"{name.capitalize()}Component", value=component.inference_component_name
        )

    def _acknowledge(self) -> None:
        reasons = {f"AwsSolutions-IAM5[Resource::{what}]": why for what, why in WILDCARDS.items()}
        for rule, reason in CONTROLS.items():
            reasons |= {f"HIPAA.Security-{rule}": reason, f"NIST.800.53.R5-{rule}": reason}
        for rule, reason in reasons.items():
            cdk.Validations.of(self).acknowledge(cdk.Acknowledgment(id=rule, reason=reason))


app = cdk.App()
SharedGpusStack(app, "SharedGpus")
app.synth()
