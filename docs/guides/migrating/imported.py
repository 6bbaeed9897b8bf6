import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker

app = cdk.App()
stack = cdk.Stack(app, "Vision", env=cdk.Environment(region="us-east-1"))
endpoint = sagemaker.CfnEndpoint(
    stack,
    "Endpoint",
    endpoint_name="digits-2025-11-02",
    endpoint_config_name="digits-2025-11-02",
)
endpoint.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
app.synth()
