import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

OLD = "digits-2025-11-02"

app = cdk.App()
stack = cdk.Stack(app, "Vision", env=cdk.Environment(region="us-east-1"))
has_moved = stack.node.try_get_context("has_moved") == "yes"
endpoint = TritonEnsembleEndpoint(
    stack,
    "Digits",
    model_repository=TritonModelRepository(
        stack, "Models", source=ModelSource.from_directory("models")
    ),
    ensemble="digits",
    instance_type=InstanceType.of("ml.g5.xlarge"),
    initial_instance_count=2,
)
ssm.StringParameter(
    stack,
    "Callers",
    parameter_name="/digits/endpoint",
    string_value=endpoint.endpoint_name if has_moved else OLD,
)
endpoint.export_outputs()
app.synth()
