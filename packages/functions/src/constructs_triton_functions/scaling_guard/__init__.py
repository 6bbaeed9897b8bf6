"""Deregisters variants from auto scaling while a deployment changes their instances.

``handler.py`` is the entry point of the Lambda function. It explains how the resources work
together.
"""

from __future__ import annotations

__all__ = ["GATE_TYPE", "PARAMETER_FOLDER", "POLICY_TYPE", "SWEEPER_TYPE", "TARGET_TYPE"]

SWEEPER_TYPE = "Custom::TritonScalingSweeper"
"""Is updated first. Its deletion in the cleanup phase ends the deployment or its rollback."""

GATE_TYPE = "Custom::TritonScalingGate"
"""Is updated after the sweeper and before the endpoint, and deregisters variants."""

TARGET_TYPE = "Custom::TritonScalableTarget"
"""Replaces ``AWS::ApplicationAutoScaling::ScalableTarget``, with the same properties."""

POLICY_TYPE = "Custom::TritonScalingPolicy"
"""Replaces ``AWS::ApplicationAutoScaling::ScalingPolicy``, with the same properties."""

PARAMETER_FOLDER = "constructs-triton/scaling-guard"
"""Folder in the Parameter Store that keeps what was deregistered until the deployment is over."""
