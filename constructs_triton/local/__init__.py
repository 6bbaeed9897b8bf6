"""Runs a synthesized SageMaker endpoint on this machine with the Triton server.

It reads the synthesized template and does not import the constructs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
