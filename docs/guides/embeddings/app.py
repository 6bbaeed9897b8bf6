import aws_cdk as cdk

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

app = cdk.App()
stack = cdk.Stack(app, "Embeddings")
source = ModelSource.from_directory("models")
TritonEnsembleEndpoint(
    stack,
    "Embeddings",
    model_repository=TritonModelRepository(stack, "Models", source=source),
    ensemble="embeddings",
    instance_type=InstanceType.of("ml.c6i.xlarge"),
    endpoint_name="embeddings",
)
app.synth()
