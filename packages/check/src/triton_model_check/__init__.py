"""Is this model repository right? Reads, checks and packs model repositories of NVIDIA Triton."""

from constructs_triton_core import same_version

__version__ = same_version("triton-model-check", "0.1.0.dev0")

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
