"""Runs a synthesized SageMaker endpoint on this machine with the Triton server.

It reads the synthesized template and does not import the constructs.
"""

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
