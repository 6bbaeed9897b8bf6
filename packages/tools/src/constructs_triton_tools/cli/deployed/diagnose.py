"""``constructs-triton diagnose``: find the cause of a failure."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.failures import Rank
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.regular_files import open_regular
from constructs_triton_core.untrusted.terminal import print_note, show_work
from constructs_triton_tools.cli.options import (
    add_aws_arguments,
    endpoint_names,
    open_session,
    read_each,
    show,
)
from constructs_triton_tools.operations.container_log import unexplained_error
from constructs_triton_tools.operations.diagnosis import (
    Diagnosis,
    Message,
    diagnose_log,
    format_diagnoses,
    printable,
    recognize,
    recognize_inner,
    unexplained_exception,
)
from constructs_triton_tools.operations.endpoint_diagnosis import (
    EndpointDiagnosis,
    diagnose_endpoint,
)
from constructs_triton_tools.operations.unknown_message import Reading, read_unknown

if TYPE_CHECKING:
    from constructs_triton_tools.operations.stack_endpoints import StackDiagnosis

#: The end of a larger log is read.
_LOG_BYTES = 16 * 2**20
#: The level that a program writes before a message in its log.
_LEVEL = re.compile(r"^(?:\S{1,40} ){0,3}\W?(?:DEBUG|INFO|WARNING)\b\W{0,5}")
_NONE = "no known failure found"
_SOURCES = "its status, stack, scaling and alarms, and the end of its logs"
_NEXT_STEP = {"CREATE_IN_PROGRESS": "run it again when the stack is created"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Find the cause of a failure: of a deployed endpoint, of all endpoints of a stack, in the "
        "log of any Triton container, or of one message. Prints the cause, the line that it was "
        "concluded from, the fix and other causes by likelihood. "
        "Exit code 1 if something is wrong."
    )
    add_aws_arguments(parser, has_stack=True)
    parser.add_argument(
        "--log-file", metavar="FILE", help="read only this log, - for standard input"
    )
    parser.add_argument(
        "--message",
        metavar="TEXT",
        help="explain only this message, - for standard input; exit code 1 if it is not known",
    )
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Diagnose and print; return 1 if something is wrong, else 0. A known message is a success."""
    if arguments.log_file is not None:
        _check_alone(arguments, "--log-file")
        return _diagnose_log(arguments, _read(arguments.log_file))
    if arguments.message is not None:
        _check_alone(arguments, "--message")
        message = _read("-") if arguments.message == "-" else arguments.message
        found = _in_message(message)
        unknown = _unknown(read_unknown(message))
        return EXIT_SUCCESS if _show_found(arguments, found, unknown) else EXIT_WRONG
    from constructs_triton_tools.operations.stack_endpoints import NoEndpointError, diagnose_stack

    session = open_session(arguments)
    try:
        names = endpoint_names(arguments, session)
    except NoEndpointError:
        return _diagnose_stack(arguments, diagnose_stack(session, arguments.stack))
    with show_work("reading events and logs"):
        results, not_read = read_each(names, lambda name: diagnose_endpoint(session, name))
    lines = "\n\n".join(_texts(results)).split("\n")
    show(arguments, {"endpoints": [result.to_dict() for result in results]}, *lines)
    print_note(*not_read)
    return EXIT_WRONG if not_read or any(result.is_failed for result in results) else EXIT_SUCCESS


def _diagnose_log(arguments: argparse.Namespace, log: str) -> int:
    """Print what a log says; return 1 if it reports an error, known or not."""
    found = diagnose_log(log, arguments.log_file, is_log=False)
    error = None if found else unexplained_error(log)
    if error is None:
        return EXIT_WRONG if _show_found(arguments, found) else EXIT_SUCCESS
    unknown = f"{_unknown(read_unknown(error))}\n  last error in {arguments.log_file}: "
    _show_found(arguments, [], unknown + printable(error))
    return EXIT_WRONG


def _diagnose_stack(arguments: argparse.Namespace, result: StackDiagnosis) -> int:
    """Print why a stack has no endpoint.

    Raises:
        InvalidValueError: nothing of the stack failed.
    """
    if result.resource is None and not result.not_read:
        raise InvalidValueError(
            f"--stack: {result.stack} has no SageMaker endpoint, and its last operation did not "
            f"fail, got {result.status}; "
            f"{_NEXT_STEP.get(result.status or '', 'check the name, and whether it is off')}"
        )
    lines = [f"stack {result.stack}: {result.status or 'unknown'}, no endpoint"]
    lines += [f"  {fact}" for fact in result.facts]
    if result.diagnoses:
        lines.append(format_diagnoses(result.diagnoses))
    elif result.resource is not None:
        lines.append(
            "cause: unknown, because no message is in the catalogue of failures; fix "
            f"{result.resource} as its reason says, and deploy the stack again"
        )
    lines += [f"not read: {unread}" for unread in result.not_read]
    document = {"endpoints": [], "stack": result.to_dict()}
    show(arguments, document, *"\n".join(lines).split("\n"))
    return EXIT_WRONG


def _texts(results: Iterable[EndpointDiagnosis]) -> Iterator[str]:
    """Yield the text of each endpoint; failures that several have are explained once.

    One failure of a stack is a failure of each of its endpoints.
    """
    explained: dict[str, str] = {}
    for result in results:
        failures = format_diagnoses(result.diagnoses) if result.diagnoses else ""
        first = explained.setdefault(failures, result.endpoint)
        is_known = bool(failures) and first != result.endpoint
        yield _text(result, f"cause: the same as of {first}" if is_known else failures)


def _text(result: EndpointDiagnosis, failures: str) -> str:
    lines = [f"{result.endpoint}: {result.status}", *(f"  {fact}" for fact in result.facts)]
    if failures:
        lines.append(failures)
    elif result.is_failed and result.not_read:
        lines.append(
            "cause: unknown, because not everything could be read; "
            "fix the errors below, then run it again"
        )
    elif result.is_failed:
        lines.append(
            "cause: unknown, because no message is in the catalogue of failures; read the log with "
            f"`constructs-triton logs {result.endpoint} --errors`"
        )
    else:
        lines.append(f"{_NONE} in {'what could be read' if result.not_read else _SOURCES}")
    lines += [f"not read: {unread}" for unread in result.not_read]
    return "\n".join(lines)


def _check_alone(arguments: argparse.Namespace, option: str) -> None:
    names = {
        "ENDPOINT": "endpoint",
        "--stack": "stack",
        "--message": "message",
        "--log-file": "log_file",
    }
    for name, attribute in names.items():
        if name != option and getattr(arguments, attribute) is not None:
            raise InvalidValueError(f"{option}: cannot be combined with {name}; remove one of them")


def _in_message(text: str) -> list[Diagnosis]:
    """Return what a pasted message says; a terminal or a page may have broken its lines."""
    source = "the message"
    line = " ".join(text.split())
    # Who pastes a line wants it explained, also if its program logged it as information.
    whole = recognize(Message(line, source)) or recognize(Message(_LEVEL.sub("", line), source))
    lines = diagnose_log(text, source, is_log=False)
    if whole is None or (lines and lines[0].rank < whole.rank):
        return lines
    if whole.rank is Rank.WRAPPER and not whole.unexplained:
        whole = replace(whole, unexplained=unexplained_exception(text))
    found = {whole.id: whole}
    # What is inside the message can have a cause that the words around it hide.
    inner = recognize_inner(Message(line, source))
    for diagnosis in (*([] if inner is None else [inner]), *lines):
        found.setdefault(diagnosis.id, diagnosis)
    return list(found.values())


def _unknown(reading: Reading) -> str:
    known = f"; {reading.known}" if reading.known else ""
    return f"cause: not known, no entry of the catalogue fits{known}\n  next: {reading.step}"


def _show_found(
    arguments: argparse.Namespace, found: list[Diagnosis], unknown: str = _NONE
) -> list[Diagnosis]:
    lines = (format_diagnoses(found) if found else unknown).split("\n")
    show(arguments, {"diagnoses": [diagnosis.to_dict() for diagnosis in found]}, *lines)
    return found


def _read(name: str) -> str:
    """Return the end of a log."""
    if name == "-":
        return sys.stdin.buffer.read()[-_LOG_BYTES:].decode("utf-8", "replace")
    path = Path(name)
    try:
        with open_regular(path) as log:
            log.seek(max(0, path.stat().st_size - _LOG_BYTES))
            return log.read(_LOG_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise InvalidValueError(
            f"--log-file: cannot be read ({error}); give the path of a log"
        ) from None
