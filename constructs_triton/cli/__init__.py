"""``constructs-triton``: thin commands over the package.

A command is a module with ``add_arguments(parser)`` and ``run(arguments) -> int``. Only the module of the
requested command is imported, so ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from constructs_triton_core.program.exit_codes import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    EXIT_NOT_DONE,
    EXIT_SUCCESS,
    exit_code_of,
)
from constructs_triton_core.program.parser import CommandParser, WrongArgumentsError
from constructs_triton_core.program.signals import ending_with_signals
from constructs_triton_core.errors import ConstructsTritonError, RepositoryError
from constructs_triton_core.untrusted.terminal import print_error, print_json, print_note

__all__ = ["complete_parser", "main"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command's module in ``constructs_triton.cli`` and its line in the help."""

    module: str
    summary: str

    def load(self) -> ModuleType:
        return import_module(f"{__name__}.{self.module}")


COMMAND_GROUPS = {
    "Models": {
        "model": Command("model.command", "create a model's folder from a model file, such as model.onnx"),
        "check": Command("check", "find the errors in a model repository"),
        "config": Command("config", "show configurations, tensors and ensemble graphs"),
        "graph": Command("assembly.graph", "draw what the endpoints of a template serve"),
    },
    "Packages and artifacts": {
        "pack": Command("pack", "write a model repository as .tar.gz archives"),
        "env": Command("artifacts.env", "build Python environments for models of the Python backend"),
        "compile": Command("compile.command", "build TensorRT plans in SageMaker jobs"),
    },
    "Your machine": {
        "project": Command("project", "create a project with an app, a model and tests"),
        "doctor": Command("program.doctor", "show what works on this machine"),
        "completion": Command("program.completion", "print the script for completion by a shell"),
        "local": Command("local", "run endpoints on this machine with the Triton server"),
        "rehearse": Command("rehearse.command", "rehearse an update in a simulated AWS account"),
    },
    "Endpoints in AWS": {
        "invoke": Command("invoke", "send tensors to an endpoint and print its response"),
        "verify": Command("verify", "compare the responses of an endpoint with recorded ones"),
        "status": Command("deployed.status", "show what deployed endpoints are doing"),
        "diagnose": Command("deployed.diagnose", "find the cause of a failure"),
        "stop": Command("deployed.stop", "delete an endpoint, and keep what creates it again"),
        "start": Command("deployed.start", "create a stopped endpoint again, with its scaling"),
        "adopt": Command("deployed.adopt", "write an app for an endpoint that was created by hand"),
        "logs": Command("deployed.logs", "print the logs of an endpoint's containers"),
        "models": Command("models", "list, add and remove models of a multi-model endpoint"),
        "warm": Command("deployed.warm", "load models of a multi-model endpoint before users call them"),
        "capture": Command("deployed.capture", "read the requests that an endpoint has captured"),
        "idle": Command("deployed.idle", "find endpoints without calls, and what they cost"),
    },
    "Planning": {
        "load-test": Command("load_test", "find the highest load that an endpoint holds"),
        "tune": Command("tune", "find the configuration of a model that holds the highest rate"),
        "plan": Command("plan", "choose instances and scaling targets from a benchmark"),
        "simulate": Command("simulate", "simulate a scaling policy on a traffic pattern"),
        "fit": Command("simulate.models", "simulate how many models a multi-model endpoint keeps loaded"),
        "recommender": Command("recommender", "write Inference Recommender jobs, and read their results"),
        "cost": Command("assembly.cost", "calculate what the endpoints of a template cost"),
        "prices": Command("prices", "fetch prices of instances from AWS"),
        "facts": Command("facts", "look up images, instance types and variables"),
    },
}
COMMANDS = {name: command for group in COMMAND_GROUPS.values() for name, command in group.items()}

_PROGRAM = "constructs-triton"
DESCRIPTION = "Check, pack, run and call NVIDIA Triton models for Amazon SageMaker endpoints."
_EXIT_CODES = "\n".join(f"  {code:<3}  {meaning}" for code, meaning in EXIT_CODES.items())
EPILOG = f"""\
examples:
  constructs-triton model new model.onnx   create models/model from a model file
  constructs-triton check models           find errors before you deploy
  constructs-triton local up cdk.out       run the endpoints that `npx cdk synth` wrote
  constructs-triton load-test NAME --random --yes -o benchmark.csv
  constructs-triton invoke NAME --input x=1.0,2.0:FP32 --endpoint-url http://127.0.0.1:8080

exit codes:
{_EXIT_CODES}

`constructs-triton COMMAND --help` describes each command.
"""
_CHECK_PATH = "check the path, its permissions and the free space of the disk"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: see ``constructs_triton_core.program.exit_codes``."""
    words = list(sys.argv[1:] if argv is None else argv)
    with ending_with_signals():
        try:
            return _main(words)
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        except BrokenPipeError:
            return EXIT_SUCCESS
        finally:
            _close_output()


def _main(words: Sequence[str]) -> int:
    try:
        return _run(words)
    except WrongArgumentsError as error:
        _report(*error.usage.splitlines(), f"{error.program}: error: {error}")
        raise SystemExit(_fail(error, words)) from None  # as argparse does
    except ConstructsTritonError as error:
        _report_error(error)
        return _fail(error, words)
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"{_where(error, words)}: {_reason(error)}; {_CHECK_PATH}"
        _report_error(message)
        return _fail(error, words, message)
    except Exception as error:  # a bug of this package: a traceback helps its maintainers only
        return _end_after_bug(error, words)


def _run(words: Sequence[str]) -> int:
    parser = _parser(words)
    if not words:
        print_note(*parser.format_help().splitlines())
        return EXIT_NOT_DONE
    try:
        arguments = parser.parse_args(words)
    except SystemExit:  # after --help or --version
        sys.stdout.flush()
        raise
    code = int(COMMANDS[arguments.command].load().run(arguments))
    sys.stdout.flush()  # here, because an error that Python meets when it exits cannot be caught
    return code


def _report(*lines: str) -> None:
    """Print on standard error, which may be a full disk too; the exit code then says it alone."""
    with suppress(OSError):
        print_note(*lines)


def _report_error(message: object) -> None:
    with suppress(OSError):
        print_error(message)


def _fail(error: Exception, words: Sequence[str], message: str = "") -> int:
    """Print a failure for a program that reads JSON, and return the exit code."""
    if "--json" in words:
        found = error.findings if isinstance(error, RepositoryError) else ()
        failure = {"error": message or str(error), "findings": [each.to_dict() for each in found]}
        with suppress(OSError):  # such as a full disk, which standard error has reported
            print_json(failure, indent=None)
    return exit_code_of(error)


def _close_output() -> None:
    """Write what is left of the output, or drop it: Python would report the error again when it exits."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _end_after_bug(error: Exception, words: Sequence[str]) -> int:
    from constructs_triton_core.program.bug_report import write_bug_report

    try:
        path = write_bug_report(error, words)
    except OSError:
        raise error from None  # without a file, the traceback has to be printed
    message = (
        f"{words[0]}: ended with an error of constructs-triton itself ({type(error).__name__}); remove what "
        f"others must not see from {path}, and attach this file to a report"
    )
    _report_error(message)
    return _fail(error, words, message)


def _where(error: OSError, words: Sequence[str]) -> str:
    """Return the path of the error. A file that is already open has a number in place of a path."""
    return os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else words[0]


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def complete_parser() -> argparse.ArgumentParser:
    """Return the parser with the arguments of every command, and their summaries as help."""
    return _parser([*COMMANDS], commands_help="command")


def _parser(words: Sequence[str], *, commands_help: str = argparse.SUPPRESS) -> argparse.ArgumentParser:
    parser = CommandParser(
        prog=_PROGRAM,
        usage=f"{_PROGRAM} [-h] [--version] COMMAND ...",
        description=f"{DESCRIPTION}\n\n{_list_of_commands()}",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=_version() if "--version" in words else "")
    # argparse cannot list commands in groups, so the description lists them.
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog=_PROGRAM, help=commands_help
    )
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(name, help=command.summary)
        if name in words:
            command.load().add_arguments(subparser)
    return parser


def _list_of_commands() -> str:
    width = max(map(len, COMMANDS))
    groups = (
        "\n".join([f"{group}:", *(f"  {name:{width}}  {each.summary}" for name, each in commands.items())])
        for group, commands in COMMAND_GROUPS.items()
    )
    return "\n\n".join(groups)


def _version() -> str:
    from importlib.metadata import version

    return f"constructs-triton {version('constructs-triton')}"
