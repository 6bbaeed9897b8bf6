"""AWS CDK constructs for NVIDIA Triton Inference Server on Amazon SageMaker."""
