"""Runs trtexec in SageMaker jobs, which build TensorRT plans."""
