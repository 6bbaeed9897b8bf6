"""The ONNX Runtime of an image's release, which decides about ONNX models where it can be asked."""
