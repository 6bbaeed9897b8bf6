"""The CloudFormation type of this project's custom resource that behaves like an endpoint of AWS.

``constructs_triton_functions`` declares the same type, because its modules import nothing of this package.
"""

from __future__ import annotations

__all__ = ["ADOPTED_TYPE"]

ADOPTED_TYPE = "Custom::TritonAdoptedEndpoint"
"""An endpoint that existed before its stack, with the properties of ``AWS::SageMaker::Endpoint``."""
