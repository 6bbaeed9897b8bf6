"""Reads what a model file says of itself, without its framework and without its weights.

``__init__.pyi`` lists the public names. Each is imported when it is first used (PEP 562).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
