import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
)


class DigitsStack(cdk.Stack):
    def __init__(self, scope: Construct, id: str, **kwargs) -> None:
        super().__init__(scope, id, **kwargs)
        models = TritonModelRepository(
            self,
            "Models",
            source=ModelSource.from_directory("models"),
        )
        self.endpoint = TritonEndpoint(
            self,
            "Endpoint",
            model_repository=models,
            model="digits",
            instance_type=InstanceType.of("ml.c6i.large"),
            endpoint_name="digits",
        )
        count = self.endpoint.auto_scale_instance_count(
            min_capacity=1,
            max_capacity=3,
        )
        count.scale_on_cpu_utilization("Cpu", target_utilization_percent=60)


if __name__ == "__main__":
    app = cdk.App()
    DigitsStack(app, "Digits")
    app.synth()
