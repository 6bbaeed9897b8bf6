"""Reads what a model file says of itself, without its framework and without its weights.

``__init__.pyi`` lists the public names. Each is imported when it is first used (PEP 562).
"""

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
