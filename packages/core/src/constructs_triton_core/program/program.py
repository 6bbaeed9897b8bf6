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
from itertools import pairwise
from types import FrameType
from typing import NamedTuple

from constructs_triton_core import __version__, errors
from constructs_triton_core.program.commands import (
    OWN_OPTIONS,
    Command,
    check_first_word,
    check_second_word,
    flat,
    listed,
)
from constructs_triton_core.program.exit_codes import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    EXIT_NOT_DONE,
    EXIT_SUCCESS,
    exit_code_of,
)
from constructs_triton_core.program.parser import CommandParser, WrongArgumentsError, short_usage
from constructs_triton_core.untrusted.terminal import print_error, print_json, print_note

__all__ = ["Command", "Program", "WrongArgumentsError"]

_CHECK_PATH = "check the path, its permissions and the free space of the disk"
_EXIT_CODES = "\n".join(f"  {code:<3}  {meaning}" for code, meaning in EXIT_CODES.items())
_SIGNALS = signal.SIGTERM, signal.SIGHUP
#: Packages that a base installation does not have.
_OPTIONAL = ("cdk_rehearse", "constructs_triton_client", "numpy")


class Program(NamedTuple):
    """A program on the command line.

    Args:
        name: Its name, which is also that of its distribution.
        description: What it does, for the help.
        examples: Command lines with a word on each, for the help.
        groups: Its commands by the headings of the help.
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
        """All commands by the words that name them, such as ``cost`` and ``cost prices``."""
        return dict(flat(self._top))

    @property
    def _top(self) -> dict[str, Command]:
        """The commands that the first word names."""
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
        """Return the words of a command: ``help WORDS`` is ``WORDS --help``, and other words are
        arguments of the default command.
        """
        words = list(words)
        if words[:1] == ["help"]:
            words = [*words[1:], "--help"]
        if not self.default:
            return words

        # A program without a description consists of its default command, whose help it shows.
        has_own_help = bool(self.description)
        if not words:
            return [] if has_own_help else [self.default]
        own_options = OWN_OPTIONS if has_own_help else ("--version",)
        if words[0] in self._top or words[0] in own_options:
            return words
        return [self.default, *words]

    def _main(self, words: Sequence[str]) -> int:
        """Run one command, print its error if it fails, and return its exit code."""
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
            reason = (error.strerror or str(error)).lower()
            message = f"{_where(error, words)}: {reason}; {_CHECK_PATH}"
            _report(print_error, message)
            return _fail(error, words, message)
        except Exception as error:  # a bug of this project: a traceback helps its maintainers only
            return self._end_after_bug(error, words)

    def _run(self, words: Sequence[str]) -> int:
        """Parse a command line, run its command and return the exit code."""
        with _no_collections():
            parser = self.parser(words)
        if not words:
            print_note(*parser.format_help().splitlines())
            return EXIT_NOT_DONE
        check_first_word(parser, self._top, words)
        try:
            arguments = parser.parse_args(words)
        except SystemExit:  # after --help or --version
            sys.stdout.flush()
            raise
        command: Command = arguments.command
        try:
            code = int(command.load().run(arguments))
        except ModuleNotFoundError as error:
            raise self._missing(command, error) from error
        except errors.InvalidValueError as error:
            options = {option.dest: option.option_strings[-1] for option in _options(parser)}
            _name_option(error, options, words)
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
        """Write a report about an error of the program itself, and return the exit code."""
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

    def parser(self, words: Sequence[str]) -> argparse.ArgumentParser:
        """Return the parser of a command line, with the arguments of the command that it names."""
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
            required=True, metavar="COMMAND", prog=self.name, help=argparse.SUPPRESS
        )
        for name in self._needed(words):
            is_program = name == self.default and not self.description
            subparser = commands.add_parser(
                name,
                help=self._top[name].summary,
                prog=self.name if is_program else f"{self.name} {name}",
            )
            if name in words[:1]:
                self._declare(self._top[name], subparser, words[1:])
        return parser

    def _needed(self, words: Sequence[str]) -> Iterable[str]:
        """The commands that need a parser, which takes as long to create as to
        import a small module.
        """
        if words and words[0] in OWN_OPTIONS:
            return ()  # the description lists the commands
        if words and words[0] in self._top:
            return words[:1]
        return self._top

    def _declare(
        self, command: Command, parser: argparse.ArgumentParser, words: Sequence[str]
    ) -> None:
        """Declare the arguments of a command, or of its own command that the next word names."""
        own = command.commands.get(words[0]) if words else None
        if own is not None:
            commands = parser.add_subparsers(required=True, metavar="COMMAND", prog=parser.prog)
            self._declare(own, commands.add_parser(words[0], help=own.summary), words[1:])
            return

        try:
            command.load().add_arguments(parser)
        except ModuleNotFoundError as error:
            raise self._missing(command, error) from error
        parser.set_defaults(command=command)
        if command.commands:
            _describe_commands(parser, command)
            if words:
                check_second_word(parser, command, words[0])

    def _list_of_commands(self) -> str:
        """Return the lines of the help that list the commands in groups."""
        width = max(map(len, self._top))
        lines = []
        for group, commands in self.groups.items():
            lines += [f"\n{group}:", *listed(commands, width)]
        return "\n".join(lines)


def _describe_commands(parser: argparse.ArgumentParser, command: Command) -> None:
    """Show in the help of a command that it has commands of its own."""
    parser.usage = f"{short_usage(parser)}\n       {parser.prog} COMMAND ..."
    lines = ["commands:", *listed(command.commands, max(map(len, command.commands)))]
    description = f"`{parser.prog} COMMAND --help` describes each command."
    parser.epilog = "\n".join([*lines, "", description, "", parser.epilog or ""]).rstrip()


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
    """Yield the options of a parser and of the parsers of its commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _options(subparser)
        elif action.option_strings:
            yield action


def _name_option(
    error: errors.InvalidValueError, options: Mapping[str, str], words: Sequence[str]
) -> None:
    """Name the option of a command in a message that begins with a keyword of Python.

    A word of the command line, such as a path, is no keyword.
    """
    place, _, message = str(error).partition(": ")
    if place not in options or place in words:
        return

    def option_or_same(keyword: re.Match[str]) -> str:
        return options.get(keyword[0], keyword[0])

    with_options = re.sub(r"(?<![a-z])[a-z]+(_[a-z]+)+", option_or_same, message)
    error.args = (f"{options[place]}: {with_options}",)


def _report(print_: Callable[..., None], *lines: object) -> None:
    """Print on standard error, which may be a full disk too; the exit code then says it alone."""
    with suppress(OSError):
        print_(*lines)


def _fail(error: Exception, words: Sequence[str], message: str = "") -> int:
    """Print a failure for a program that reads JSON, and return the exit code."""
    if _asks_for_json(words):
        findings = error.findings if isinstance(error, errors.RepositoryError) else ()
        failure = {
            "error": message or str(error),
            "findings": [finding.to_dict() for finding in findings],
        }
        with suppress(OSError):  # such as a full disk, which standard error has reported
            print_json(failure, indent=None)
    return exit_code_of(error)


def _asks_for_json(words: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, by words that may not have been parsed."""
    if "--json" in words:
        return True
    for option in ("--output-format", "--format"):
        if f"{option}=json" in words or (option, "json") in pairwise(words):
            return True
    return False


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
    handled = []
    if threading.current_thread() is threading.main_thread():  # others cannot handle signals
        handled = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, _end_by_signal)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _end_by_signal(number: int, _: FrameType | None) -> None:
    """End the program after a signal; a second one ends the process at once."""
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)
