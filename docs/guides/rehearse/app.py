import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonImage,
    TritonModelRepository,
)


class VisionStack(cdk.Stack):
    def __init__(self, scope: Construct, id: str, **kwargs) -> None:
        super().__init__(scope, id, **kwargs)
        models = TritonModelRepository(
            self,
            "Models",
            source=ModelSource.from_directory("models"),
        )
        endpoint = TritonEndpoint(
            self,
            "Ocr",
            model_repository=models,
            model="classifier",
            image=TritonImage.dlc("25.09"),
            instance_type=InstanceType.of("ml.c6i.large"),
            endpoint_name="digits",
        )
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        count.scale_on_cpu_utilization("Cpu", target_utilization_percent=60)


if __name__ == "__main__":
    app = cdk.App()
    VisionStack(app, "Vision")
    app.synth()
