import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_ecs_patterns as patterns
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as functions
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct


class ShopStack(cdk.Stack):
    def __init__(self, scope: Construct, id: str, **kwargs) -> None:
        super().__init__(scope, id, **kwargs)
        key = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING)
        orders = dynamodb.Table(self, "Orders", partition_key=key)
        jobs = sqs.Queue(self, "Jobs")
        worker = functions.Function(
            self,
            "Worker",
            runtime=functions.Runtime.PYTHON_3_13,
            handler="index.handler",
            code=functions.Code.from_inline("def handler(event, context): return {}"),
            environment={"TABLE": orders.table_name},
        )
        worker.add_event_source(sources.SqsEventSource(jobs))
        orders.grant_read_write_data(worker)
        bus = events.EventBus(self, "Bus", event_bus_name="shop")
        pattern = events.EventPattern(source=["shop"])
        events.Rule(self, "Placed", event_bus=bus, event_pattern=pattern, targets=[targets.SqsQueue(jobs)])
        image = ecs.ContainerImage.from_registry("public.ecr.aws/docker/library/nginx")
        options = patterns.ApplicationLoadBalancedTaskImageOptions(image=image)
        patterns.ApplicationLoadBalancedFargateService(
            self, "Web", desired_count=2, task_image_options=options
        )


if __name__ == "__main__":
    app = cdk.App()
    ShopStack(app, "Shop")
    app.synth()
