"""The CloudFormation types of this project's custom resources that behave like a resource of AWS.

``constructs_triton_functions`` declares the same types, because its modules import nothing of this package.
"""

from __future__ import annotations

__all__ = ["ADOPTED_TYPE"]

ADOPTED_TYPE = "Custom::TritonAdoptedEndpoint"
"""An endpoint that existed before its stack, with the properties of ``AWS::SageMaker::Endpoint``."""

GUARDED_TARGET_TYPE = "Custom::TritonScalableTarget"
"""With ``scaling_guard``, it replaces ``AWS::ApplicationAutoScaling::ScalableTarget``."""

GUARDED_POLICY_TYPE = "Custom::TritonScalingPolicy"
"""With ``scaling_guard``, it replaces ``AWS::ApplicationAutoScaling::ScalingPolicy``."""
