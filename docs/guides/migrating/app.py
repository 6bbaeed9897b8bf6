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
    initial_instance_count=2,
    image=TritonImage.dlc("25.09"),
    endpoint_name="digits-2025-11-02",
    adopt_existing=True,
)
count = endpoint.auto_scale_instance_count(min_capacity=2, max_capacity=6)
count.scale_on_invocations_per_instance(
    "Invocations", target_invocations_per_minute=600
)
app.synth()
