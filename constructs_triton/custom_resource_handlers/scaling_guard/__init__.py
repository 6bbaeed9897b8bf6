"""Deregisters variants from auto scaling while a deployment changes their instances.

``handler.py`` is the entry point of the Lambda function. It explains how the three resources work together.
"""

from __future__ import annotations

__all__ = ["GUARD_TYPE", "PARAMETER_FOLDER", "POLICY_TYPE", "TARGET_TYPE"]

GUARD_TYPE = "Custom::TritonScalingGuard"
"""CloudFormation type of the resource that is updated before the endpoint."""

TARGET_TYPE = "Custom::TritonScalableTarget"
"""Replaces ``AWS::ApplicationAutoScaling::ScalableTarget``, with the same properties."""

POLICY_TYPE = "Custom::TritonScalingPolicy"
"""Replaces ``AWS::ApplicationAutoScaling::ScalingPolicy``, with the same properties."""

PARAMETER_FOLDER = "constructs-triton/scaling-guard"
"""Folder in the Parameter Store that keeps what was deregistered until the deployment is over."""
