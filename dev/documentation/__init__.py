"""Builds the documentation site: ``python -m documentation`` in ``dev/``, or ``make docs``.

The pages of ``docs/`` and the generated ones are put together in ``build/docs``. Zensical renders
them to ``build/site``, where every link is then checked.
"""
