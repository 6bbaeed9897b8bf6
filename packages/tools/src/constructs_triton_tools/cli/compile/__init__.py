"""``constructs-triton compile``: build TensorRT plans in SageMaker jobs."""
