"""Places what models need besides their own files: Python environments.

``__init__.pyi`` lists the public names. Each is imported on first use.
"""

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
