"""Copies model archives, or the files of models, to the S3 prefix that an endpoint loads them from.

``handler.py`` is the entry point of the Lambda function. The command line places models with the
same modules.
"""

from __future__ import annotations

__all__ = ["FILES_RESOURCE_TYPE", "RESOURCE_TYPE"]

RESOURCE_TYPE = "Custom::TritonModelSync"
"""CloudFormation type of the custom resource that places the archives of multi-model endpoints."""

FILES_RESOURCE_TYPE = "Custom::TritonModelFiles"
"""CloudFormation type of the custom resource that places one model as files."""
