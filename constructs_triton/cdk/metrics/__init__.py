"""CloudWatch metrics that SageMaker publishes for an endpoint."""
