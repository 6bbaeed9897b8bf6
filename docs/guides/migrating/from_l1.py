"""The endpoint in constructs, with the logical id of the old one."""

import aws_cdk as cdk

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonImage,
    TritonModelRepository,
)

app = cdk.App()
stack = cdk.Stack(app, "Vision", env=cdk.Environment(region="us-east-1"))
endpoint = TritonEnsembleEndpoint(
    stack,
    "Digits",
    model_repository=TritonModelRepository(
        stack, "Models", source=ModelSource.from_directory("models")
    ),
    ensemble="digits",
    instance_type=InstanceType.of("ml.g5.xlarge"),
    image=TritonImage.dlc("25.09"),
    endpoint_name="digits",
    variant_name="main",
)
endpoint.cfn_endpoint.override_logical_id("Endpoint")
app.synth()
