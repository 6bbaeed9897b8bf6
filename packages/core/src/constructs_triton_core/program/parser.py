"""The parser of arguments: no abbreviations, and a suggestion for a misspelt word or option."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from shutil import get_terminal_size
from typing import Any, NoReturn

from constructs_triton_core.spelling import closest, did_you_mean, quoted

_TWO_COLUMNS = re.compile(r"(?P<first>\s*\S.*?\s{2,})(?P<second>\S.*)")
# An option stays on the line of its value.
_WORD = re.compile(r"""-\S+ (?!-)(?:"[^"]*"|'[^']*'|\S+)|"[^"]*"|\S+""")
_COMMAND = re.compile(r"\s+(constructs-triton|--)")


class HelpFormatter(argparse.HelpFormatter):
    """Fills the paragraphs of descriptions, and keeps indented lines,
    which are examples and tables.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = [f"{indent}{line}".rstrip() for line in textwrap.dedent(text).splitlines()]
        filled: list[str] = []
        for is_prose, group in groupby(lines, key=_is_prose):
            if is_prose:
                filled += textwrap.wrap(" ".join(group), width, break_long_words=False)
                continue
            for line in group:
                filled += _fitted(line, width)
        return "\n".join(filled) + "\n"


def _is_prose(line: str) -> bool:
    return bool(line) and not line.startswith(" ")


def _fitted(line: str, width: int) -> Iterator[str]:
    """Yield the lines of an example or of a row of a table."""
    if len(line) <= width:
        yield line
        return
    indent = " " * (len(line) - len(line.lstrip()))
    columns = _TWO_COLUMNS.fullmatch(line)
    if columns and len(columns["first"]) > width // 2:
        yield columns["first"].rstrip()
        yield from _wrapped(columns["second"], width, f"{indent}    ", f"{indent}    ")
    elif columns:
        yield from _wrapped(columns["second"], width, columns["first"], " " * len(columns["first"]))
    elif _COMMAND.match(line):
        continued = line.removesuffix("\\")
        parts = _filled(_WORD.findall(continued), width - len(indent) - 2, "    ")
        yield from (f"{indent}{part} \\" for part in parts[:-1])
        yield f"{indent}{parts[-1]}" + (" \\" if continued != line else "")
    else:
        yield from _wrapped(line.strip(), width, indent, f"{indent}  ")


def _filled(parts: Iterable[str], width: int, indent: str) -> list[str]:
    """Put as many parts as fit on each line; further lines are indented."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"{indent}{part}" if lines else part)
    return lines


def _wrapped(text: str, width: int, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def short_usage(parser: argparse.ArgumentParser) -> str:
    """Return the command with its required options and positional arguments;
    the list has the others.
    """
    required = []
    positional = []
    grouped = set()
    for group in parser._mutually_exclusive_groups:
        grouped |= {id(action) for action in group._group_actions}
    for action in parser._actions:
        if not action.option_strings and id(action) not in grouped:
            positional.append(_named(action))
        if action.option_strings and action.required:
            required.append(_named(action))
    for group in parser._mutually_exclusive_groups:
        if group.required:
            options = [action.option_strings[-1] for action in group._group_actions]
            required.append(f"({' | '.join(options)})")

    parts = [f"{parser.prog} [options]", *required, *positional]
    width = get_terminal_size().columns - 2 - len("usage: ")
    return "\n       ".join(_filled(parts, width, "    ")).replace("%", "%%")


def _named(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.option_strings:
        return f"{action.option_strings[-1]} {name}"
    several = {
        "*": f"[{name} ...]",
        "+": f"{name} [...]",
        "?": f"[{name}]",
        argparse.PARSER: f"{name} ...",
    }
    return several.get(str(action.nargs), name)


class WrongArgumentsError(Exception):
    """The words of the command line are not arguments of this command."""

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.program = parser.prog
        self.usage = parser.format_usage()


class CommandParser(argparse.ArgumentParser):
    """A parser that takes no abbreviated options, because a new option could
    change what one stands for.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **{"formatter_class": HelpFormatter, **settings})

    def format_usage(self) -> str:
        """Return the usage, which is argparse's without the optional options."""
        self.usage = self.usage or short_usage(self)
        return super().format_usage()

    def format_help(self) -> str:
        """Return the help, with the same usage."""
        self.usage = self.usage or short_usage(self)
        return super().format_help()

    def parse_known_args(  # type: ignore[override] # argparse declares two overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Name the option that was probably meant, before argparse reports what
        is missing without it.
        """
        words = list(sys.argv[1:] if args is None else args)
        has_actions = any(
            isinstance(action, argparse._SubParsersAction) for action in self._actions
        )
        # The options behind the name of an action belong to the action.
        is_own = (lambda word: word.startswith("-")) if has_actions else "--".__ne__
        before = ""
        for word in takewhile(is_own, words):
            self._check_option(word, before)
            before = word
        parsed, unknown = super().parse_known_args(words, namespace)
        # argparse would report them as those of the program, which has no arguments.
        if unknown:
            self._refuse_unknown(unknown[0])
        return parsed, unknown

    def _refuse_unknown(self, word: str) -> NoReturn:
        help_of_command = f"see `{self.prog} --help`"
        if word.startswith("-"):
            self.error(f"argument {word}: there is no such option; {help_of_command}")
        self.error(
            f"got more arguments than the command takes, from {word!r} on; {help_of_command}"
        )

    def _check_option(self, word: str, before: str) -> None:
        name, equals, value = word.partition("=")
        option = self._option_string_actions.get(name)
        if option is not None:
            if equals and option.nargs == 0:
                self.error(f"argument {name}: takes no value, got {value!r}; write {name} alone")
            return

        # argparse reads -help as -h with the value "elp".
        if not name.startswith("--") and f"-{name}" in self._option_string_actions:
            self.error(f'argument {name}: there is no such option; did you mean "-{name}"?')
        # argparse reads a word with a space as a value.
        if not name.startswith("--") or " " in name:
            return

        known = [option[2:] for option in self._option_string_actions if option[:2] == "--"]
        meant = closest(name[2:], known)
        if meant:
            hint = f'did you mean "--{meant}"?'
        else:
            hint = f"see `{self.prog} --help`"
            for action in self._get_positional_actions():
                hint += f"; write {_named(action)} without an option"
        # A value that begins with two dashes is a value only behind an equals sign.
        option_before = self._option_string_actions.get(before)
        if option_before is not None and option_before.nargs is None:
            hint += f"; if it is the value of {before}, write {before}={word}"
        self.error(f"argument {name}: there is no such option; {hint}")

    def error(self, message: str) -> NoReturn:
        """Raise the error in place of ending the process,
        so that ``main`` can print it as JSON too.
        """
        raise WrongArgumentsError(self, message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the choice that was probably meant. argparse lists all of them: 26 for a command."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        hint = did_you_mean(str(value), choices, f"choose from {quoted(choices)}")
        # argparse writes the name of the argument before the message.
        raise argparse.ArgumentError(
            action, f"must be one of its choices, got {str(value)!r}; {hint}"
        )
