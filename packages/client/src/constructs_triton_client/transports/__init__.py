"""How a request reaches an endpoint: over SageMaker, plain HTTP or in memory."""
