"""``constructs-triton``: thin commands over the package.

A command is a module with ``add_arguments(parser)`` and ``run(arguments) -> int``. Only the module of the
requested command is imported, so ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from constructs_triton.errors import ConstructsTritonError, RepositoryError
from constructs_triton.untrusted.terminal import print_error, print_json, print_note

__all__ = ["main"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command's module in ``constructs_triton.cli`` and its line in the help."""

    module: str
    summary: str

    def load(self) -> ModuleType:
        return import_module(f"{__name__}.{self.module}")


COMMANDS = {
    "project": Command("project", "create a project with an app, a model and tests"),
    "check": Command("check", "find the errors in a model repository"),
    "pack": Command("pack", "write a model repository as .tar.gz archives"),
    "graph": Command("assembly.graph", "draw what the endpoints of a template serve"),
    "model": Command("model.command", "create a model's folder from a model file, such as model.onnx"),
    "env": Command("artifacts.env", "build Python environments for models of the Python backend"),
    "compile": Command("compile.command", "build TensorRT plans in SageMaker jobs"),
    "config": Command("config", "show configurations, tensors and ensemble graphs"),
    "facts": Command("facts", "look up images, instance types and variables"),
    "models": Command("models", "list, add and remove models of a multi-model endpoint"),
    "load-test": Command("load_test", "find the highest load that an endpoint holds"),
    "plan": Command("plan", "choose instances and scaling targets from a benchmark"),
    "simulate": Command("simulate", "simulate a scaling policy on a traffic pattern"),
    "fit": Command("simulate.models", "simulate how many models a multi-model endpoint keeps loaded"),
    "recommender": Command("recommender", "write Inference Recommender jobs, and read their results"),
    "prices": Command("prices", "fetch prices of instances from AWS"),
    "local": Command("local", "run endpoints on this machine with the Triton server"),
    "rehearse": Command("rehearse.command", "rehearse an update in a simulated AWS account"),
    "invoke": Command("invoke", "send tensors to an endpoint and print its response"),
    "verify": Command("verify", "compare the responses of an endpoint with recorded ones"),
    "capture": Command("deployed.capture", "read the requests that an endpoint has captured"),
    "status": Command("deployed.status", "show what deployed endpoints are doing"),
    "diagnose": Command("deployed.diagnose", "find the cause of a failure"),
    "idle": Command("deployed.idle", "find endpoints without calls, and what they cost"),
    "stop": Command("deployed.stop", "delete an endpoint, and keep what creates it again"),
    "start": Command("deployed.start", "create a stopped endpoint again, with its scaling"),
    "logs": Command("deployed.logs", "print the logs of an endpoint's containers"),
    "warm": Command("deployed.warm", "load models of a multi-model endpoint before users call them"),
}

DESCRIPTION = "Check, pack, run and call NVIDIA Triton models for Amazon SageMaker endpoints."
EPILOG = """\
examples:
  constructs-triton model new model.onnx   create models/model from a model file
  constructs-triton check models           find errors before you deploy
  constructs-triton local up cdk.out       run the endpoints that `npx cdk synth` wrote
  constructs-triton load-test NAME --random --yes -o benchmark.csv
  constructs-triton invoke NAME --input x=1.0,2.0:FP32 --endpoint-url http://127.0.0.1:8080

`constructs-triton COMMAND --help` describes each command.
Exit codes: 0 success, 1 errors were found, 2 wrong arguments.
"""
_CHECK_PATH = "check the path, its permissions and the free space of the disk"
EXIT_FINE, EXIT_ERRORS, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 success, 1 errors were found, 2 wrong arguments."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = _parser(words).parse_args(words)
        code = int(COMMANDS[arguments.command].load().run(arguments))
        sys.stdout.flush()  # here, because an error that Python meets when it exits cannot be caught
        return code
    except _WrongArgumentsError as error:
        print_note(*error.usage.splitlines(), f"{error.program}: error: {error}")
        raise SystemExit(_fail(error, words, EXIT_USAGE)) from None  # as argparse does
    except ConstructsTritonError as error:
        print_error(error)
        return _fail(error, words, EXIT_ERRORS)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe. Without this, Python reports the error again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FINE
    except OSError as error:
        message = f"{_where(error, words[0])}: {_reason(error)}; {_CHECK_PATH}"
        print_error(message)
        return _fail(message, words, EXIT_ERRORS)


def _fail(error: object, words: Sequence[str], code: int) -> int:
    """Print a failure for a program that reads JSON, and return the exit code."""
    if "--json" in words:
        found = error.findings if isinstance(error, RepositoryError) else ()
        print_json({"error": str(error), "findings": [each.to_dict() for each in found]}, indent=None)
    return code


def _where(error: OSError, command: str) -> str:
    """Return the path of the error. A file that is already open has a number in place of a path."""
    return os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else command


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


class _WrongArgumentsError(Exception):
    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.program, self.usage = parser.prog, parser.format_usage()


class _Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviated options, because a new option could change what one stands for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        raise _WrongArgumentsError(self, message)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="constructs-triton",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=_OneLineEach,
    )
    parser.add_argument("--version", action="version", version=_version() if "--version" in words else "")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(name, help=command.summary)
        if name in words:
            command.load().add_arguments(subparser)
    return parser


class _OneLineEach(argparse.RawDescriptionHelpFormatter):
    """Puts the summary of every command beside its name; argparse forgets to count their indentation."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = max(map(len, COMMANDS)) + 4


def _version() -> str:
    from importlib.metadata import version

    return f"constructs-triton {version('constructs-triton')}"
