"""Builds what models need: Python environments, and TensorRT plans in SageMaker jobs."""
