"""The parser of arguments: no abbreviations, and a suggestion for a misspelt word or option."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NoReturn

from constructs_triton_core.program.help_formatter import HelpFormatter, short_usage
from constructs_triton_core.spelling import closest, quoted


class WrongArgumentsError(Exception):
    """The words of the command line are not arguments of this command."""

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.program, self.usage = parser.prog, parser.format_usage()


class CommandParser(argparse.ArgumentParser):
    """A parser that takes no abbreviated options, because a new option could change what one stands for."""

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
        """Name the option that was probably meant, before argparse reports what is missing without it."""
        words = list(sys.argv[1:] if args is None else args)
        has_actions = any(isinstance(each, argparse._SubParsersAction) for each in self._actions)
        # The options behind the name of an action belong to the action.
        is_own = (lambda word: word.startswith("-")) if has_actions else "--".__ne__
        for word in takewhile(is_own, words):
            self._check_option(word.partition("=")[0])
        return super().parse_known_args(words, namespace)

    def _check_option(self, name: str) -> None:
        # argparse reads a word with a space as a value.
        if not name.startswith("--") or " " in name or name in self._option_string_actions:
            return
        meant = closest(name, [each for each in self._option_string_actions if each.startswith("--")])
        hint = f'did you mean "{meant}"?' if meant else f"see `{self.prog} --help`"
        self.error(f"argument {name}: there is no such option; {hint}")

    def error(self, message: str) -> NoReturn:
        """Raise the error in place of ending the process, so that ``main`` can print it as JSON too."""
        raise WrongArgumentsError(self, message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the choice that was probably meant. argparse lists all of them: 26 for a command."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(each) for each in action.choices]
        meant = closest(str(value), choices)
        hint = f'did you mean "{meant}"?' if meant else f"choose from {quoted(choices)}"
        # argparse writes the name of the argument before the message.
        raise argparse.ArgumentError(action, f"must be one of its choices, got {str(value)!r}; {hint}")
