"""Checks after a deployment that an endpoint runs the configuration that the deployment created.

``handler.py`` is the entry point of the Lambda function.
"""

from __future__ import annotations

__all__ = ["CHECK_TYPE"]

CHECK_TYPE = "Custom::TritonUpdateCheck"
"""CloudFormation type of the resource that is updated after the endpoint."""
