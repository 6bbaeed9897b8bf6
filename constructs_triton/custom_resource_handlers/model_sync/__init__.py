"""Copies model archives, or the files of models, to the S3 prefix that an endpoint loads them from.

``handler.py`` is the entry point of the Lambda function. The command line places models with the same
modules.
"""

from __future__ import annotations

__all__ = [
    "FILES_RESOURCE_TYPE",
    "FUNCTION_TIMEOUT_SECONDS",
    "RESOURCE_TYPE",
    "SERVICE_TIMEOUT_SECONDS",
]

RESOURCE_TYPE = "Custom::TritonModelSync"
"""CloudFormation type of the custom resource that places the archives of multi-model endpoints."""

FILES_RESOURCE_TYPE = "Custom::TritonModelFiles"
"""CloudFormation type of the custom resource that places one model as files."""

FUNCTION_TIMEOUT_SECONDS = 15 * 60
"""How long one run of the function may take; AWS Lambda's maximum."""

SERVICE_TIMEOUT_SECONDS = 60 * 60
"""How long CloudFormation waits for the response to a request; CloudFormation's maximum."""
