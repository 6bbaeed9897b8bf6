"""Updates an endpoint that existed before the stack, and returns it to its previous configuration.

``handler.py`` is the entry point of the Lambda function.
"""

from __future__ import annotations

__all__ = ["ADOPTED_TYPE", "PARAMETER_FOLDER"]

ADOPTED_TYPE = "Custom::TritonAdoptedEndpoint"
"""Replaces ``AWS::SageMaker::Endpoint``, with the same properties and attributes."""

PARAMETER_FOLDER = "constructs-triton/adopted"
"""Folder in the Parameter Store that keeps, for each adopted endpoint, what it was before."""
