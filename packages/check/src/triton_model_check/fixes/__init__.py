"""Fixes: small edits of ``config.pbtxt`` and ``model.py`` that keep comments and layout."""
