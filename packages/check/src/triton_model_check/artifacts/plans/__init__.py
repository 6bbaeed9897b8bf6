"""Builds TensorRT plans in SageMaker jobs, on the GPU and with the image of the endpoint."""
