"""The endpoint in L1 constructs, before the migration."""

import tarfile
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_sagemaker as sagemaker

with tarfile.open("model.tar.gz", "w:gz") as archive:
    archive.add("models", ".")

app = cdk.App()
stack = cdk.Stack(app, "Vision", env=cdk.Environment(region="us-east-1"))
role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
asset = assets.Asset(stack, "Archive", path=str(Path("model.tar.gz").resolve()))
asset.grant_read(role)
pull = [
    "ecr:GetAuthorizationToken",
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetDownloadUrlForLayer",
]
role.add_to_principal_policy(iam.PolicyStatement(actions=pull, resources=["*"]))
model = sagemaker.CfnModel(
    stack,
    "Model",
    execution_role_arn=role.role_arn,
    primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
        image="763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.09-py3",
        model_data_url=asset.s3_object_url,
        environment={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "digits"},
    ),
)
model.node.add_dependency(role)
config = sagemaker.CfnEndpointConfig(
    stack,
    "Config",
    production_variants=[
        sagemaker.CfnEndpointConfig.ProductionVariantProperty(
            variant_name="main",
            model_name=model.attr_model_name,
            instance_type="ml.g5.xlarge",
            initial_instance_count=1,
            initial_variant_weight=1,
        )
    ],
)
sagemaker.CfnEndpoint(
    stack,
    "Endpoint",
    endpoint_name="digits",
    endpoint_config_name=config.attr_endpoint_config_name,
)
app.synth()
