"""Tests of your own stacks: stable snapshots, assertions about endpoints, and endpoints on this
machine.

``__init__.pyi`` lists the public names. Each is imported when it is first used. The pytest plugin
is in ``constructs_triton.testing.plugin``.
"""

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
