"""The errors of stack operations."""

from __future__ import annotations

__all__ = ["ApiError", "ResourceFailedError", "StackError", "TemplateError"]


class StackError(Exception):
    """A stack operation failed; the message is the reason that CloudFormation would give."""


class TemplateError(StackError):
    """A template is wrong, or uses something that is not supported here."""


class ResourceFailedError(StackError):
    """A resource failed but exists, so a rollback must delete it by its physical id."""

    def __init__(self, message: str, physical_id: str) -> None:
        super().__init__(message)
        self.physical_id = physical_id


class ApiError(Exception):
    """An error of the CloudFormation API: its code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
