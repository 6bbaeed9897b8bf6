"""What can go wrong while a stack is made, changed or deleted."""

from __future__ import annotations

__all__ = ["ApiError", "ResourceFailedError", "StackError", "TemplateError"]


class StackError(Exception):
    """A stack operation that failed; the message is the reason CloudFormation would give."""


class TemplateError(StackError):
    """A template that is wrong, or that asks for something this stand-in does not know."""


class ResourceFailedError(StackError):
    """A resource that failed but is there, so that a rollback has to delete it by its physical id."""

    def __init__(self, message: str, physical_id: str) -> None:
        super().__init__(message)
        self.physical_id = physical_id


class ApiError(Exception):
    """An answer of the CloudFormation API that is an error: its code, and a message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
