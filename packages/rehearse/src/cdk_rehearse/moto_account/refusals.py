"""The errors with which services refuse a call: moto turns these classes into their answers."""

from __future__ import annotations

from moto.core.exceptions import ServiceException
from moto.ec2.exceptions import DependencyViolationError
from moto.iam.exceptions import NotFoundException as NoSuchRoleError
from moto.sagemaker.exceptions import SagemakerClientError, ValidationError

__all__ = [
    "DependencyViolationError",
    "InvocationError",
    "NoSuchRoleError",
    "ResourceLimitError",
    "ValidationError",
]


class ResourceLimitError(SagemakerClientError):
    """SageMaker's refusal of what exceeds a quota."""

    code = "ResourceLimitExceeded"


class InvocationError(ServiceException):
    """A refusal of SageMaker's runtime API."""

    code = "ValidationError"
