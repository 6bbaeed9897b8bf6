"""What all packages need: errors, findings, bounded reads, child processes, commands, templates."""

__all__ = ["OWN_PACKAGES"]

OWN_PACKAGES = (
    "constructs_triton_core",
    "triton_model_check",
    "constructs_triton_functions",
    "constructs_triton_client",
    "cdk_rehearse",
    "constructs_triton_tools",
    "constructs_triton",
)
"""The packages of this project, each after those that it may import."""
