"""A container without network access, whose models are downloaded through subnets without internet.

Callers are in the same VPC and use its interface endpoint. cdk-nag's rules for AWS Solutions, HIPAA
and NIST 800-53 report only the findings acknowledged below.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
    TritonVpcEndpoints,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"
# Acknowledged findings by the name of the rule. HIPAA and NIST use the same names with their
# prefixes.
WILDCARDS = {
    "*": (
        "PutMetricData, GetAuthorizationToken and the network "
        "interfaces know no resource beforehand"
    ),
    (
        "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>"
        ":log-group:/aws/sagemaker/Endpoints/*"
    ): "SageMaker names the log group after the endpoint",
}
CIDR = "port 443 is open to the VPC's own CIDR, which is not known at synth"
CONTROLS = {
    "IAMNoInlinePolicy": "each policy belongs to one role and is deleted with it",
    "VPCDefaultSecurityGroupClosed": "nothing is in the default security group",
    "EC2RestrictedCommonPorts": CIDR,
    "EC2RestrictedSSH": CIDR,
}


class VpcIsolationStack(cdk.Stack):
    """An ensemble without network access, in a VPC without internet access."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        key = self._make_key()
        vpc = self._make_vpc(key)
        TritonVpcEndpoints(self, "Routes", vpc=vpc, runtime_access=True)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "digits")
        )
        TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=repository,
            ensemble="digits",
            instance_type=InstanceType.of("ml.g5.xlarge"),
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED),
            enable_network_isolation=True,
            encryption_key=key,
        )
        self._acknowledge()

    def _make_key(self) -> kms.Key:
        key = kms.Key(self, "Key", enable_key_rotation=True)
        key.grant_encrypt_decrypt(iam.ServicePrincipal("logs.amazonaws.com"))
        return key

    def _make_vpc(self, key: kms.Key) -> ec2.Vpc:
        flow_logs = logs.LogGroup(self, "FlowLogs", encryption_key=key)
        return ec2.Vpc(
            self,
            "Vpc",
            max_azs=2,
            nat_gateways=0,
            subnet_configuration=[
                ec2.SubnetConfiguration(name="Inside", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
            ],
            flow_logs={
                "All": ec2.FlowLogOptions(
                    destination=ec2.FlowLogDestination.to_cloud_watch_logs(flow_logs)
                )
            },
        )

    def _acknowledge(self) -> None:
        reasons = {f"AwsSolutions-IAM5[Resource::{what}]": why for what, why in WILDCARDS.items()}
        reasons["AwsSolutions-EC23"] = CIDR
        for rule, reason in CONTROLS.items():
            reasons |= {f"HIPAA.Security-{rule}": reason, f"NIST.800.53.R5-{rule}": reason}
        for rule, reason in reasons.items():
            cdk.Validations.of(self).acknowledge(cdk.Acknowledgment(id=rule, reason=reason))


app = cdk.App()
VpcIsolationStack(app, "VpcIsolation")
app.synth()
