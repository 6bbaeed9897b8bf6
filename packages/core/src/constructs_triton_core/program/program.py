"""The shell of a program with commands: its help, the errors of its commands, and its exit codes.

A command is a module with ``add_arguments(parser)`` and ``run(arguments) -> int``. Only the module
of the requested command is imported, so ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import pairwise
from types import FrameType, ModuleType
from typing import NamedTuple

from constructs_triton_core import __version__, errors
from constructs_triton_core.program.exit_codes import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    EXIT_NOT_DONE,
    EXIT_SUCCESS,
    exit_code_of,
)
from constructs_triton_core.program.parser import CommandParser, WrongArgumentsError
from constructs_triton_core.untrusted.terminal import print_error, print_json, print_note

__all__ = ["Command", "Program"]

_CHECK_PATH = "check the path, its permissions and the free space of the disk"
_OWN_OPTIONS = ("-h", "--help", "--version")
_EXIT_CODES = "\n".join(f"  {code:<3}  {meaning}" for code, meaning in EXIT_CODES.items())
_SIGNALS = signal.SIGTERM, signal.SIGHUP
#: Packages that a base installation does not have.
_OPTIONAL = ("cdk_rehearse", "constructs_triton_client", "numpy")


class Command(NamedTuple):
    """A command of a program.

    Args:
        module: The module of the command.
        summary: Its line in the help.
        extra: What ``pip install`` adds for it to the base installation. Default: nothing.
    """

    module: str
    summary: str
    extra: str = ""

    def load(self) -> ModuleType:
        """Import the module."""
        return import_module(self.module)


class Program(NamedTuple):
    """A program on the command line.

    Args:
        name: Its name, which is also that of its distribution.
        description: What it does, for the help.
        examples: Command lines with a word on each, for the help.
        groups: Its commands by the headings of the help. A name of two words is a command whose
            first word is a command too, as ``cost`` and ``cost prices``; the help of the first one
            describes it.
        default: The command that runs if the first word names none. If there is no other, its help
            is that of the program. Default: the word is an error.
    """

    name: str
    description: str
    examples: str
    groups: Mapping[str, Mapping[str, Command]]
    default: str = ""

    @property
    def commands(self) -> dict[str, Command]:
        """All commands by name."""
        return {name: command for group in self.groups.values() for name, command in group.items()}

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run one command and return its exit code:
        see ``constructs_triton_core.program.exit_codes``.
        """
        words = self._with_command(sys.argv[1:] if argv is None else argv)
        with ending_with_signals():
            try:
                return self._main(words)
            except KeyboardInterrupt:
                return EXIT_INTERRUPTED
            except BrokenPipeError:
                return EXIT_SUCCESS
            finally:
                _close_output()

    def _with_command(self, words: Sequence[str]) -> list[str]:
        if not self.description and words[:1] not in (
            ["--version"],
            *([name] for name in self.commands),
        ):
            return [self.default, *words]
        both = " ".join(
            words[:2]
        )  # such as "cost prices"; other words after "cost" are those of "cost"
        if both in self.commands:
            return [both, *words[2:]]
        names_no_command = bool(words) and words[0] not in (*self.commands, *_OWN_OPTIONS)
        return [self.default, *words] if self.default and names_no_command else [*words]

    def _main(self, words: Sequence[str]) -> int:
        try:
            return self._run(words)
        except WrongArgumentsError as error:
            _report(print_note, *error.usage.splitlines(), f"{error.program}: error: {error}")
            raise SystemExit(_fail(error, words)) from None  # as argparse does
        except errors.ConstructsTritonError as error:
            _report(print_error, error)
            return _fail(error, words)
        except BrokenPipeError:
            raise
        except OSError as error:
            message = (
                f"{_where(error, words)}: {(error.strerror or str(error)).lower()}; {_CHECK_PATH}"
            )
            _report(print_error, message)
            return _fail(error, words, message)
        except Exception as error:  # a bug of this project: a traceback helps its maintainers only
            return self._end_after_bug(error, words)

    def _run(self, words: Sequence[str]) -> int:
        with _no_collections():
            parser = self.parser(words)
        if not words:
            print_note(*parser.format_help().splitlines())
            return EXIT_NOT_DONE
        try:
            arguments = parser.parse_args(words)
        except SystemExit:  # after --help or --version
            sys.stdout.flush()
            raise
        command = self.commands[arguments.command]
        try:
            code = int(command.load().run(arguments))
        except ModuleNotFoundError as error:
            raise self._missing(command, error) from error
        except errors.InvalidValueError as error:
            _name_option(error, {each.dest: each.option_strings[-1] for each in _options(parser)})
            raise
        # here, because an error that Python meets when it exits cannot be caught
        sys.stdout.flush()
        return code

    def _missing(self, command: Command, error: ModuleNotFoundError) -> Exception:
        """Return the error that says how to install a package of the command."""
        package = (error.name or "").partition(".")[0]
        if not command.extra or package not in _OPTIONAL:
            return error
        return errors.MissingDependencyError(
            f"{package.replace('_', '-')} is not installed; run `pip install "
            f"'{self.name}[{command.extra}]'`"
        )

    def _end_after_bug(self, error: Exception, words: Sequence[str]) -> int:
        from constructs_triton_core.program.bug_report import write_bug_report

        try:
            path = write_bug_report(error, self.name, words)
        except OSError:
            raise error from None  # without a file, the traceback has to be printed
        message = (
            f"{words[0]}: ended with an error of {self.name} itself ({type(error).__name__}); "
            f"remove what others must not see from {path}, and attach this file to a report"
        )
        _report(print_error, message)
        return _fail(error, words, message)

    def complete_parser(self) -> argparse.ArgumentParser:
        """Return the parser with the arguments of every command, and their summaries as help."""
        return self.parser([*self.commands], commands_help="command")

    def parser(
        self, words: Sequence[str], *, commands_help: str = argparse.SUPPRESS
    ) -> argparse.ArgumentParser:
        """Return the parser with the arguments of the commands among the words."""
        parser = CommandParser(
            prog=self.name,
            usage=f"{self.name} [-h] [--version] COMMAND ...",
            description=f"{self.description}\n{self._list_of_commands()}",
            epilog=f"examples:\n{self.examples}\n\nexit codes:\n{_EXIT_CODES}\n\n"
            f"`{self.name} COMMAND --help` describes each command.\n",
        )
        parser.add_argument("--version", action="version", version=f"{self.name} {__version__}")
        # argparse cannot list commands in groups, so the description lists them.
        commands = parser.add_subparsers(
            dest="command", required=True, metavar="COMMAND", prog=self.name, help=commands_help
        )
        for name in self._named(words):
            is_program = name == self.default and not self.description
            command, prog = self.commands[name], self.name if is_program else f"{self.name} {name}"
            subparser = commands.add_parser(name, help=command.summary, prog=prog)
            if name in words:
                self._declare(command, subparser)
        return parser

    def _named(self, words: Sequence[str]) -> Iterable[str]:
        """The commands that need a parser, which takes as long to create as to
        import a small module.
        """
        if not words or words[0] in _OWN_OPTIONS:
            return ()  # the description lists the commands
        is_known = words[0] in self.commands
        return [name for name in self.commands if name in words] if is_known else self.commands

    def _declare(self, command: Command, parser: argparse.ArgumentParser) -> None:
        try:
            command.load().add_arguments(parser)
        except ModuleNotFoundError as error:
            raise self._missing(command, error) from error

    def _list_of_commands(self) -> str:
        width = max(len(name.partition(" ")[0]) for name in self.commands)
        lines = []
        for group, commands in self.groups.items():
            lines += [f"\n{group}:"]
            lines += [
                f"  {each:{width}}  {commands[each].summary}"
                for each in commands
                if " " not in each
            ]
        return "\n".join(lines)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Do not look for garbage, which takes a tenth of the time:
    modules and parsers live until the end.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _options(each)
        elif action.option_strings:
            yield action


def _name_option(error: errors.InvalidValueError, options: Mapping[str, str]) -> None:
    """Name the option of a command in a message that begins with a keyword of Python."""
    place, _, message = str(error).partition(": ")
    if place in options:
        message = re.sub(
            r"(?<![a-z])[a-z]+(_[a-z]+)+",
            lambda keyword: options.get(keyword[0], keyword[0]),
            message,
        )
        error.args = (f"{options[place]}: {message}",)


def _report(print_: Callable[..., None], *lines: object) -> None:
    """Print on standard error, which may be a full disk too; the exit code then says it alone."""
    with suppress(OSError):
        print_(*lines)


def _fail(error: Exception, words: Sequence[str], message: str = "") -> int:
    """Print a failure for a program that reads JSON, and return the exit code."""
    forms = ("--output-format", "--format")
    if (
        "--json" in words
        or any(f"{form}=json" in words for form in forms)
        or any((form, "json") in pairwise(words) for form in forms)
    ):
        found = error.findings if isinstance(error, errors.RepositoryError) else ()
        failure = {"error": message or str(error), "findings": [each.to_dict() for each in found]}
        with suppress(OSError):  # such as a full disk, which standard error has reported
            print_json(failure, indent=None)
    return exit_code_of(error)


def _close_output() -> None:
    """Write what is left of the output, or drop it:
    Python would report the error again when it exits.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _where(error: OSError, words: Sequence[str]) -> str:
    """Return the path of the error. A file that is already open has a number in place of a path."""
    return os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else words[0]


@contextmanager
def ending_with_signals() -> Iterator[None]:
    """Raise SystemExit with 128 and the number of the signal, as shells do, in place of ending at
    once.

    What the command has begun is then deleted, as after Ctrl-C.

    A second signal ends the process at once. What the caller of the process ignores stays ignored,
    such as SIGHUP under nohup.
    """
    can_handle = threading.current_thread() is threading.main_thread()
    usual = [
        number for number in _SIGNALS if can_handle and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in usual:
        signal.signal(number, _end_by_signal)
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


def _end_by_signal(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)
