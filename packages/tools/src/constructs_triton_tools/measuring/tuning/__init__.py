"""Searches the configuration of a model that holds the highest rate within a latency limit.

``tune`` measures on this machine, and ``constructs-triton tune`` calls it. The search (``racing``,
``axes``, ``rounds``) only calls a function that measures a rate of a candidate, so it also runs on
a simulated clock. Needs the extras ``local`` and ``load``; the picture of the report needs
``plots``.
"""

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
