"""A folder of Triton models: its contents, the checks of it, and the archives packed from it.

``__init__.pyi`` lists the public names. Each is imported when it is first used (PEP 562), so that checking
imports no archive code and packing imports no rules.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
