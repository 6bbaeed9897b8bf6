"""Tests of your own stacks: stable snapshots, assertions about endpoints, and endpoints on this machine.

``__init__.pyi`` lists the public names. Each is imported when it is first used. The pytest plugin is in
``constructs_triton.testing.plugin``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
