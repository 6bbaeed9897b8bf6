"""Sends recorded requests to an endpoint at the end of a deployment, and compares the responses.

``handler.py`` is the entry point of the Lambda function. The command ``verify`` uses
``comparison.py`` too.
"""

from __future__ import annotations

__all__ = ["FILE_VERSION", "VERIFICATION_TYPE"]

VERIFICATION_TYPE = "Custom::TritonVerification"
"""CloudFormation type of the resource that is created and updated after the endpoint."""

FILE_VERSION = 1
"""Version of the file that the function reads."""
