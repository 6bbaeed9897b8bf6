"""The exceptions of all packages.

::

    ConstructsTritonError
    ├── InvalidValueError (ValueError)    a value is out of range, malformed or unknown
    │   ├── AwsError                      AWS cannot be reached, or refuses a call
    │   ├── FactNotFoundError             nothing is published about a Region, image or type
    │   └── TemplateError                 a template cannot be read or evaluated
    ├── ModelConfigError                  a config.pbtxt cannot be parsed
    ├── RepositoryError                   a model repository has errors; has all findings
    ├── ArchiveError                      a model archive cannot be written or read
    ├── CodecError (ValueError)
    │   ├── RequestEncodingError          arrays cannot be encoded as a request
    │   └── ResponseDecodingError         bytes cannot be decoded as a response
    ├── InvocationError                   an endpoint returned an error; has the status
    │   ├── EndpointThrottledError        too many requests
    │   ├── ModelNotReadyError            a multi-model endpoint is still loading the model
    │   ├── NoCapacityError               an inference component has no copy yet
    │   └── ModelOutOfMemoryError         the model does not fit beside the loaded ones
    ├── LocalEndpointError                a local endpoint cannot start or continue
    │   └── ContainerExitError            its container does not start
    └── MissingDependencyError            an optional package or library is not installed

Messages read ``<where>: <what is wrong>[, got <value>]; <how to fix it>``. All packages raise
these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from constructs_triton_core.visible_text import visible_lines

if TYPE_CHECKING:
    from constructs_triton_core.findings import Finding

__all__ = [
    "ArchiveError",
    "CodecError",
    "ConstructsTritonError",
    "ContainerExitError",
    "EndpointThrottledError",
    "FactNotFoundError",
    "InvalidValueError",
    "InvocationError",
    "LocalEndpointError",
    "MissingDependencyError",
    "ModelConfigError",
    "ModelNotReadyError",
    "ModelOutOfMemoryError",
    "NoCapacityError",
    "RepositoryError",
    "RequestEncodingError",
    "ResponseDecodingError",
    "TemplateError",
]


class ConstructsTritonError(Exception):
    """Base class of every error that this library raises deliberately.

    Its text shows control characters as escapes, because messages quote files, names and servers,
    and Python prints them to a terminal or a CI log.
    """

    def __str__(self) -> str:
        return visible_lines(super().__str__())


class InvalidValueError(ConstructsTritonError, ValueError):
    """A property or argument is out of range or malformed, or contradicts another."""


class AwsError(InvalidValueError):
    """AWS cannot be reached, or refuses a call.

    Args:
        reason: What is wrong.
        hint: How to fix it; empty if it is not known.
        code: Error code of AWS; empty if it cannot be reached.
        permission: IAM action that is missing; ``None`` for other errors.
        is_absent: Whether what the call is about does not exist.
    """

    def __init__(
        self,
        reason: str,
        hint: str,
        code: str = "",
        permission: str | None = None,
        is_absent: bool = False,
    ) -> None:
        super().__init__(f"{reason}; {hint}" if hint else reason)
        self.reason = reason
        self.hint = hint
        self.code = code
        self.permission = permission
        self.is_absent = is_absent


class CodecError(ConstructsTritonError, ValueError):
    """Bytes or arrays do not follow the KServe v2 protocol."""


class RequestEncodingError(CodecError):
    """Arrays cannot be encoded as a request."""


class ResponseDecodingError(CodecError):
    """Bytes cannot be decoded as a response."""


class InvocationError(ConstructsTritonError):
    """An endpoint returned an error.

    Args:
        message: Text of the error.
        status: HTTP status of the model or the service; ``None`` if the transport does not know it.
        model_message: Triton's message; ``None`` if there is none.
        request_id: Id of the request, for AWS support; ``None`` if the transport does not know it.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        model_message: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.model_message = model_message
        self.request_id = request_id


class EndpointThrottledError(InvocationError):
    """More requests than the account or the endpoint accepts, after all retries."""


class NoCapacityError(InvocationError):
    """An inference component has no copy. The request starts the first one, which takes minutes."""


class ModelNotReadyError(InvocationError):
    """A multi-model endpoint is still loading the model, after all retries; loading continues."""


class ModelOutOfMemoryError(InvocationError):
    """The container does not have enough memory to load or run the model (status 507)."""


class MissingDependencyError(ConstructsTritonError):
    """An optional package or a system library is not installed;
    the message contains the install command.
    """


class FactNotFoundError(InvalidValueError):
    """Nothing is published about this region, image version or instance type."""


class TemplateError(InvalidValueError):
    """A synthesized template cannot be read, or has a value that is known only at deployment."""


class ModelConfigError(ConstructsTritonError):
    """A model configuration cannot be parsed.

    Args:
        finding: Where, and why.
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


class RepositoryError(ConstructsTritonError):
    """A model repository has errors.

    Args:
        repository: Path or name of the repository.
        findings: All of its errors.
    """

    def __init__(self, repository: str, findings: Sequence[Finding]) -> None:
        from constructs_triton_core.findings import Verdict, format_findings  # noqa: PLC0415 - not for --help

        self.repository, self.findings, self.verdict = (
            repository,
            tuple(findings),
            Verdict.of(findings),
        )
        count = f"{len(findings)} error{'s' if len(findings) != 1 else ''}"
        super().__init__(
            f"{repository}: {count}, {self.verdict.words}\n{format_findings(findings)}"
        )


class ArchiveError(ConstructsTritonError):
    """A model archive cannot be written or read."""


class LocalEndpointError(ConstructsTritonError):
    """A local endpoint cannot start or continue."""


class ContainerExitError(LocalEndpointError):
    """The models or the variables are wrong, so that the container does not
    start on SageMaker either.
    """
