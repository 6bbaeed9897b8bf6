"""A folder of Triton models: its content, its checks, and the archives packed from it.

``__init__.pyi`` lists the public names. Each is imported on first use (PEP 562), so checking imports no
archive code, and packing imports no rules.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
