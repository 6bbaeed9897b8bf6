"""Builds what models need besides their own files: Python environments and TensorRT plans."""
