"""Triton's ``config.pbtxt``: read, write, build and check it.

``__init__.pyi`` lists the public names, those of the builder included. Each is imported when it is
first used (PEP 562); protobuf is imported when a configuration is read.
"""

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
