"""The command ``explain`` of every program: what the code of a finding means, and how to fix what
it reports.

The codes are those of all installed packages, and of the catalogue of failures.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.failures import Failure, known_failures
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_core.spelling import closest
from constructs_triton_core.untrusted.terminal import Line, print_json, print_lines, print_table

__all__ = ["explanation"]

Entry = Mapping[str, str]
"""What is known about a code, by the words that are printed before it; ``title`` comes first."""

#: Modules whose ``entries()`` are the codes of a package.
_CATALOGUES = ("triton_model_check.reporting.explained", "cdk_rehearse.updates.codes")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Explain a code that a check, a rehearsal or a diagnosis prints in brackets: what it means "
        "and why, an example, and how to fix it. "
        "With the beginning of codes or a group, list its codes."
    )
    parser.add_argument(
        "code", metavar="CODE", help="a code, such as text-enum, or a group of codes"
    )
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Print what is known about a code or a group.

    Raises:
        InvalidValueError: no code and no group has this name.
    """
    name = arguments.code
    of_code = _of_code(name)
    of_group = [] if of_code else _of_group(name)
    found = of_code or of_group
    if not found:
        near = closest(name, _codes())
        hint = f'did you mean "{near}"?' if near else "write a code that a finding has in brackets"
        raise InvalidValueError(
            f'CODE: no finding and no group has this code, got "{name}"; {hint}'
        )

    if arguments.json:
        print_json({"codes": [{"code": code, **entry} for code, entry in found]})
    elif of_code:
        for code, entry in of_code:
            print_lines(*_lines(code, entry))
    else:
        print_table(("code", "meaning"), ((code, entry["title"]) for code, entry in of_group))
    return EXIT_SUCCESS


def explanation(code: str) -> str:
    """Return what :func:`run` prints of a code, as text; "" if no finding has this code."""
    for known, entry in _of_code(code):
        return "\n".join(map(_plain, _lines(known, entry)))
    return ""


def _plain(line: Line) -> str:
    """Return a line without its styles."""
    if isinstance(line, str):
        return line
    return "".join(part if isinstance(part, str) else part[0] for part in line)


def _is_in_group(code: str, entry: Entry, name: str) -> bool:
    """Whether a group has the name, or the code begins with the name and a hyphen."""
    return _begins(code, name) or entry.get("group") == name.replace("-", "_")


def _begins(code: str, name: str) -> bool:
    return code.startswith(f"{name.rstrip('-')}-")


def _lines(code: str, entry: Entry) -> Iterator[Line]:
    """Yield the lines that are printed of a code."""
    yield [(f"{code}: ", "1"), entry["title"]]
    for word, text in entry.items():
        if "\n" in text:
            yield [(f"{word}:", "1")]
            yield from textwrap.indent(text, "    ").splitlines()
        elif text and word != "title":
            yield [(f"{word}: ", "1"), text]


def _as_sentence_start(cause: str) -> str:
    """Return a cause with a capital letter, unless it begins with a name such as ``x.py``."""
    first_word = cause.split(maxsplit=1)[0]
    if not first_word.isalpha():
        return cause
    return f"{cause[:1].upper()}{cause[1:]}"


def _of_code(name: str) -> list[tuple[str, Entry]]:
    """Return what the packages and the catalogue of failures know about a code."""
    found = [(code, entry) for code, entry in _of_packages() if code == name]
    failures = [failure for failure in known_failures() if failure.id == name]
    return [*found, *((name, _of_failure(failure)) for failure in failures)]


def _of_group(name: str) -> list[tuple[str, Entry]]:
    """Return the codes of a group, or those that begin with a name."""
    found = [(code, entry) for code, entry in _of_packages() if _is_in_group(code, entry, name)]
    failures = [failure for failure in known_failures() if _begins(failure.id, name)]
    return [*found, *((failure.id, _of_failure(failure)) for failure in failures)]


def _codes() -> Iterator[str]:
    yield from (code for code, _ in _of_packages())
    yield from (failure.id for failure in known_failures())


def _of_packages() -> Iterator[tuple[str, Entry]]:
    """Yield the codes of all installed packages."""
    for module in _CATALOGUES:
        package = module.partition(".")[0]
        if find_spec(package) is not None:
            yield from import_module(module).entries()


def _of_failure(failure: Failure) -> Entry:
    """Return what is known about a failure. Its pattern is compiled for it, so only this one."""
    causes, fix, if_none_fits, meaning = failure.filled()
    first, *others = [meaning, *causes] if meaning else causes
    return {
        "title": f"{_as_sentence_start(first)}.",
        "message": failure.example,
        "where": failure.where,
        "causes" if meaning else "other causes": "; or ".join(others),
        "fix": fix,
        "if it is something else": if_none_fits,
        "see": ", ".join(failure.keywords),
        "source": failure.source,
    }
