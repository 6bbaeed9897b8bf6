"""The exceptions of constructs_triton.

::

    ConstructsTritonError
    ├── InvalidValueError (ValueError)        a property or argument is out of range, malformed or unknown
    │   ├── FactNotFoundError                 nothing is published about a region, image or instance type
    │   └── TemplateError                     a synthesized template cannot be read or evaluated
    ├── ModelConfigError                      a config.pbtxt cannot be parsed
    ├── RepositoryError                       a model repository has errors; carries all findings
    ├── ArchiveError                          a model archive cannot be written or read
    ├── CodecError (ValueError)
    │   ├── RequestEncodingError              arrays cannot be encoded as a request
    │   └── ResponseDecodingError             bytes cannot be decoded as a response
    ├── InvocationError                       an endpoint returned an error; carries the status
    │   ├── EndpointThrottledError            too many requests
    │   ├── ModelNotReadyError                a multi-model endpoint is still loading the model
    │   ├── NoCapacityError                   an inference component has no copy yet
    │   └── ModelOutOfMemoryError             the model does not fit beside the loaded ones
    ├── LocalEndpointError                    a local endpoint cannot start or continue
    │   └── ContainerExitError                its container does not start: a model or a variable is wrong
    └── MissingDependencyError                an optional package or a system library is not installed

Messages read ``<where>: <what is wrong>[, got <value>]; <how to fix it>``. The errors that a caller meets are
those of ``constructs_triton_core.errors``: the same classes under both names.
"""

from __future__ import annotations

from collections.abc import Sequence

from constructs_triton_core.findings import Finding, Verdict, format_findings
from constructs_triton_core.errors import (
    CodecError,
    ConstructsTritonError,
    EndpointThrottledError,
    InvalidValueError,
    InvocationError,
    MissingDependencyError,
    ModelNotReadyError,
    ModelOutOfMemoryError,
    NoCapacityError,
    RequestEncodingError,
    ResponseDecodingError,
)

__all__ = [
    "ArchiveError",
    "CodecError",
    "ConstructsTritonError",
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
        count = f"{len(findings)} error{'s' if len(findings) != 1 else ''}"
        verdict = Verdict.of(findings)
        super().__init__(f"{repository}: {count}, {verdict.words}\n{format_findings(findings)}")
        self.repository = repository
        self.verdict = verdict
        self.findings = tuple(findings)


class ArchiveError(ConstructsTritonError):
    """A model archive cannot be written or read."""


class LocalEndpointError(ConstructsTritonError):
    """A local endpoint cannot start or continue."""
