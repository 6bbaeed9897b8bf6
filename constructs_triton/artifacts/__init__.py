"""Builds what a model needs and a file of it does not contain: Python environments, TensorRT plans."""
