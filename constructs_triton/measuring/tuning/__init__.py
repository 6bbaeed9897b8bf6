"""Searches the configuration of a model that holds the highest rate within a latency limit.

``tune`` measures on this machine, and ``constructs-triton tune`` calls it. The search (``racing``, ``axes``,
``rounds``) only calls a function that measures a rate of a candidate, so it also runs on a simulated clock.
Needs the extras ``local`` and ``load``; the picture of the report needs ``plots``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
