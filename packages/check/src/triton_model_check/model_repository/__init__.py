"""A folder of Triton models: its content, its checks, and the archives packed from it.

``__init__.pyi`` lists the public names. Each is imported on first use (PEP 562), so checking
imports no archive code, and packing imports no rules.
"""

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
