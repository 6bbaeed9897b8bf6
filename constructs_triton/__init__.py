"""AWS CDK constructs for NVIDIA Triton Inference Server on Amazon SageMaker.

``__init__.pyi`` lists the public names. Each is imported when it is first used (PEP 562), so that
the client and the command line start no Node process.
"""

from constructs_triton_core import same_version

__version__ = same_version("constructs-triton", "0.1.0.dev0")

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
