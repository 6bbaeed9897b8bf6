"""Findings, help and fixes in an editor, while a person types: ``triton-model-check lsp``."""
