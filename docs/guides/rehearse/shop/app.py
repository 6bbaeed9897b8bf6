import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sqs as sqs
from constructs import Construct


class ShopStack(cdk.Stack):
    def __init__(self, scope: Construct, id: str, **kwargs) -> None:
        super().__init__(scope, id, **kwargs)
        key = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING)
        dynamodb.Table(self, "Orders", partition_key=key)
        sqs.Queue(self, "Jobs")


if __name__ == "__main__":
    app = cdk.App()
    ShopStack(app, "Shop")
    app.synth()
