"""Builds the Python environments of models of the Python backend."""
