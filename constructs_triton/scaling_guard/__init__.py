"""Takes variants out of auto scaling while a deployment changes their instances, and scales the others.

The modules of this folder are a deploy-time function, which ``handler.py`` begins. They are shipped without
the rest of the package, so they import nothing but each other, boto3 and the standard library.
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "CODE_DIRECTORY",
    "CODE_FOLDER",
    "GUARD_TYPE",
    "HANDLER",
    "PARAMETER_FOLDER",
    "POLICY_TYPE",
    "TARGET_TYPE",
]

CODE_DIRECTORY = Path(__file__).parent.parent
"""The folder that becomes the function's code; of it, only the modules of :data:`CODE_FOLDER` are shipped."""

CODE_FOLDER = Path(__file__).parent.name
"""Name of the folder that is shipped."""

HANDLER = f"{CODE_FOLDER}.handler.handler"
"""Lambda's name of the function, relative to :data:`CODE_DIRECTORY`."""

GUARD_TYPE = "Custom::TritonScalingGuard"
"""CloudFormation type of the resource before the endpoint."""

TARGET_TYPE = "Custom::TritonScalableTarget"
"""Stands for ``AWS::ApplicationAutoScaling::ScalableTarget``, with its properties."""

POLICY_TYPE = "Custom::TritonScalingPolicy"
"""Stands for ``AWS::ApplicationAutoScaling::ScalingPolicy``, with its properties."""

PARAMETER_FOLDER = "constructs-triton/scaling-guard"
"""Where, in the parameter store of Systems Manager, descriptions wait until a deployment has succeeded."""
