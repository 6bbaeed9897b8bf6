"""The exit codes of every command, and which error has which.

A script or a CI job decides by the code alone. After 1, what was looked at has to change; after 2,
how the command was called, or where it runs.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable

from constructs_triton_core.errors import (
    ArchiveError,
    AwsError,
    ConstructsTritonError,
    ContainerExitError,
    InvocationError,
    ModelConfigError,
    RepositoryError,
    ResponseDecodingError,
)

__all__ = [
    "EXIT_CODES",
    "EXIT_INTERRUPTED",
    "EXIT_NOT_DONE",
    "EXIT_SUCCESS",
    "EXIT_WRONG",
    "FoundWrongError",
    "combined_code",
    "exit_code_of",
]

EXIT_SUCCESS, EXIT_WRONG, EXIT_NOT_DONE, EXIT_INTERRUPTED = 0, 1, 2, 130

EXIT_CODES = {
    EXIT_SUCCESS: "success",
    EXIT_WRONG: "what you asked for was looked at, and something is wrong",
    EXIT_NOT_DONE: "it could not be looked at: arguments, paths, AWS, a server, a package",
    EXIT_INTERRUPTED: "you pressed Ctrl-C, also where that is the usual way to stop",
    128 + signal.SIGTERM: "SIGTERM ended it (129: SIGHUP), where that is not how to stop",
}
"""The meaning of each code, for the help and the documentation."""


class FoundWrongError(ConstructsTritonError):
    """What a command looked at is wrong, for results whose own error is about a value."""


#: Errors of a model, an archive or an answer. Every other error is about arguments, files or the
#: machine.
_WRONG = (
    ArchiveError,
    ContainerExitError,
    InvocationError,
    ModelConfigError,
    RepositoryError,
    ResponseDecodingError,
)
_CONNECTIONS = ("boto3", "botocore", "urllib3")
_MODEL_CODES = ("ModelError", "ModelStreamError")


def exit_code_of(error: BaseException) -> int:
    """Return the exit code of a command that ends with this error."""
    if isinstance(error, FoundWrongError):
        return EXIT_WRONG
    if isinstance(error, _WRONG) and not _is_out_of_reach(error.__cause__ or error.__context__):
        return EXIT_WRONG
    return EXIT_NOT_DONE


def combined_code(codes: Iterable[int]) -> int:
    """Return the exit code of a command that looked at several things:
    what is wrong counts most.
    """
    return min((code for code in codes if code != EXIT_SUCCESS), default=EXIT_SUCCESS)


def _is_out_of_reach(origin: BaseException | None) -> bool:
    """Whether the operating system, the network or AWS refused, so that nothing was looked at."""
    if isinstance(origin, AwsError):
        return True
    if isinstance(origin, OSError):
        return (
            origin.errno is not None
        )  # gzip reports a damaged file as an OSError without a number
    if origin is None or type(origin).__module__.partition(".")[0] not in _CONNECTIONS:
        return False
    # SageMaker wraps the answer of a model in an error of its own.
    response = getattr(origin, "response", None) or {}
    return response.get("Error", {}).get("Code") not in _MODEL_CODES
