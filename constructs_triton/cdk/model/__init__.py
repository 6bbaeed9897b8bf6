"""SageMaker models without an endpoint."""
