"""Is this model repository right? Reads, checks and packs model repositories of NVIDIA Triton."""

from constructs_triton_core import same_version

__version__ = same_version("triton-model-check", "0.1.0.dev0")
