"""The errors of stack operations."""

from __future__ import annotations

from constructs_triton_core.cloud_assembly.intrinsics import TemplateBudgetError
from constructs_triton_core.errors import TemplateError

__all__ = [
    "FAILURES",
    "ApiError",
    "InferredError",
    "NotSimulatedError",
    "StackError",
    "TemplateError",
]


class StackError(Exception):
    """A stack operation failed; the message is the reason that CloudFormation would give."""


class NotSimulatedError(StackError):
    """A resource uses what this account does not simulate,
    or refers to a resource of another account.
    """


class InferredError(StackError):
    """A refusal that no document of AWS states."""


FAILURES = (StackError, TemplateError, TemplateBudgetError)
"""What makes a stack operation fail: an operation, or a template that is wrong or not supported."""


class ApiError(Exception):
    """An error of the CloudFormation API: its code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
