"""The exceptions of constructs_triton.

::

    ConstructsTritonError
    ├── InvalidValueError (ValueError)        a property or argument that is out of range or unknown
    │   └── FactNotFoundError                 a region, image version or instance type without an entry
    ├── ModelConfigError                      a config.pbtxt that cannot be read
    ├── RepositoryError                       a model repository that was refused; carries all findings
    ├── ArchiveError                          an archive that cannot be written or read
    ├── CodecError (ValueError)
    │   ├── RequestEncodingError              arrays that cannot become a request
    │   └── ResponseDecodingError             bytes that are no response
    ├── InvocationError                       an endpoint answered with an error; carries the status
    │   ├── EndpointThrottledError            too many requests (constructs_triton.client)
    │   ├── ModelNotReadyError                a multi-model endpoint still loads the model (same place)
    │   └── ModelOutOfMemoryError             the model does not fit beside the others (same place)
    ├── LocalEndpointError                    the local run cannot start or go on
    │   └── ContainerExitError                what the image's start script refuses (constructs_triton.local)
    └── MissingDependencyError                an optional package or system library is absent

Messages read ``<path>: <what is wrong>, got <value>; <the change that mends it>``.
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
    """Whatever this library raises on purpose."""


class InvalidValueError(ConstructsTritonError, ValueError):
    """A property or argument that is out of range, malformed or contradicts another."""


class FactNotFoundError(InvalidValueError):
    """A region, image version or instance type for which nothing is published."""


class ModelConfigError(ConstructsTritonError):
    """A model configuration that cannot be read; ``finding`` says where and why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


class RepositoryError(ConstructsTritonError):
    """A model repository that was refused; ``findings`` holds every error, not only the first."""

    def __init__(self, repository: str, findings: Sequence[Finding]) -> None:
        count = f"{len(findings)} error{'s' if len(findings) != 1 else ''}"
        super().__init__(f"{repository}: {count} found\n{format_findings(findings)}")
        self.repository = repository
        self.findings = tuple(findings)


class ArchiveError(ConstructsTritonError):
    """A model archive that cannot be written or read."""


class CodecError(ConstructsTritonError, ValueError):
    """Bytes or arrays that do not fit the KServe v2 protocol."""


class RequestEncodingError(CodecError):
    """Arrays that cannot become a request."""


class ResponseDecodingError(CodecError):
    """Bytes that are not the response they claim to be."""


class InvocationError(ConstructsTritonError):
    """An endpoint answered with an error.

    ``status`` is the HTTP status of the model or the service, ``model_message`` what Triton said, and
    ``request_id`` what AWS support asks for; each is ``None`` where the transport does not know it.
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
    """The local run of an endpoint cannot start or go on."""


class MissingDependencyError(ConstructsTritonError):
    """An optional package or a system library is absent; the message names the command that installs it."""
