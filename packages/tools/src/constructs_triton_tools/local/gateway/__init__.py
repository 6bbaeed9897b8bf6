"""The HTTP gateway that answers like SageMaker and routes to the servers."""
