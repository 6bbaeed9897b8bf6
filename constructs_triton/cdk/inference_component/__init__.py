"""Endpoints whose instances several inference components share, and the components."""
