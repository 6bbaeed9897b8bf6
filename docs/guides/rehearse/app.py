import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from constructs_triton import (
    CompressionType,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonEnvironment,
    TritonImage,
    TritonModelRepository,
    TritonVariant,
)


class VisionStack(cdk.Stack):
    def __init__(self, scope: Construct, id: str, **kwargs) -> None:
        super().__init__(scope, id, **kwargs)
        key = kms.Key(self, "Key")
        models = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory("models"), encryption_key=key
        )
        endpoint = TritonEndpoint(
            self,
            "Digits",
            model_repository=models,
            model="classifier",
            compression_type=CompressionType.NONE,
            image=TritonImage.dlc("25.04"),
            instance_type=InstanceType.of("ml.c6i.large"),
            variants=[
                TritonVariant(variant_name="current"),
                TritonVariant(variant_name="candidate", environment=TritonEnvironment(thread_count=4)),
            ],
            endpoint_name="digits",
        )
        scaling = endpoint.variants[0].auto_scale_instance_count(min_capacity=1, max_capacity=4)
        scaling.scale_on_cpu_utilization("Cpu", target_utilization_percent=60)


if __name__ == "__main__":
    app = cdk.App()
    VisionStack(app, "Vision")
    app.synth()
