"""The exceptions of constructs_triton.

::

    ConstructsTritonError
    ├── InvalidValueError (ValueError)        a property or argument is out of range, malformed or unknown
    │   └── FactNotFoundError                 nothing is published about a region, image or instance type
    ├── ModelConfigError                      a config.pbtxt cannot be parsed
    ├── RepositoryError                       a model repository has errors; carries all findings
    ├── ArchiveError                          a model archive cannot be written or read
    ├── CodecError (ValueError)
    │   ├── RequestEncodingError              arrays cannot be encoded as a request
    │   └── ResponseDecodingError             bytes cannot be decoded as a response
    ├── InvocationError                       an endpoint returned an error; carries the status
    │   ├── EndpointThrottledError            too many requests (constructs_triton.client)
    │   ├── ModelNotReadyError                a multi-model endpoint is still loading the model (same place)
    │   ├── NoCapacityError                   an inference component has no copy yet (same place)
    │   └── ModelOutOfMemoryError             the model does not fit beside the loaded ones (same place)
    ├── LocalEndpointError                    a local endpoint cannot start or continue
    │   └── ContainerExitError                the image's start script exits (constructs_triton.local)
    └── MissingDependencyError                an optional package or a system library is not installed

Messages read ``<where>: <what is wrong>[, got <value>]; <how to fix it>``.
"""

from __future__ import annotations

from collections.abc import Sequence

from constructs_triton.findings import Finding, format_findings

__all__ = [
    "ArchiveError",
    "CodecError",
    "ConstructsTritonError",
    "FactNotFoundError",
    "InvalidValueError",
    "InvocationError",
    "LocalEndpointError",
    "MissingDependencyError",
    "ModelConfigError",
    "RepositoryError",
    "RequestEncodingError",
    "ResponseDecodingError",
]


class ConstructsTritonError(Exception):
    """Base class of every error that this library raises deliberately."""


class InvalidValueError(ConstructsTritonError, ValueError):
    """A property or argument is out of range or malformed, or contradicts another."""


class FactNotFoundError(InvalidValueError):
    """Nothing is published about this region, image version or instance type."""


class ModelConfigError(ConstructsTritonError):
    """A model configuration cannot be parsed; ``finding`` says where and why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


class RepositoryError(ConstructsTritonError):
    """A model repository has errors; ``findings`` contains all of them."""

    def __init__(self, repository: str, findings: Sequence[Finding]) -> None:
        count = f"{len(findings)} error{'s' if len(findings) != 1 else ''}"
        super().__init__(f"{repository}: {count} found\n{format_findings(findings)}")
        self.repository = repository
        self.findings = tuple(findings)


class ArchiveError(ConstructsTritonError):
    """A model archive cannot be written or read."""


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


class LocalEndpointError(ConstructsTritonError):
    """A local endpoint cannot start or continue."""


class MissingDependencyError(ConstructsTritonError):
    """An optional package or a system library is not installed; the message contains the install command."""
