"""AWS Lambda functions that handle CloudFormation custom resources during a deployment.

Each folder in this one is a function. Its code in AWS is that folder and the modules beside the
folders, without the rest of the package. The modules therefore import only each other (by relative
imports), boto3 and the standard library. The command line uses some of the same modules.
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "CODE_DIRECTORY",
    "CODE_FOLDER",
    "FUNCTION_TIMEOUT_SECONDS",
    "PYTHON_VERSION",
    "SERVICE_TIMEOUT_SECONDS",
]

CODE_FOLDER = Path(__file__).parent.name
"""Name of this folder, which is the top-level package in AWS."""

CODE_DIRECTORY = Path(__file__).parent.parent
"""The directory that contains it."""

FUNCTION_TIMEOUT_SECONDS = 15 * 60
"""How long one run of a function may take; AWS Lambda's maximum."""

SERVICE_TIMEOUT_SECONDS = 60 * 60
"""How long CloudFormation waits for the response to a request; CloudFormation's maximum."""

PYTHON_VERSION = "3.14"
"""Python version of the functions in AWS.

It is fixed, because a Region may not have the newest version yet, and an upgrade of the CDK should
not change the runtime. ``make facts-check`` reports newer versions.
"""
