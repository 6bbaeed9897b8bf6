"""Models that generate: the files of the vLLM and TensorRT-LLM backends."""
