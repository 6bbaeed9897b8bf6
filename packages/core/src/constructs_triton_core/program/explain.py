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
from constructs_triton_core.facts.failures import known_failures
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_core.spelling import closest
from constructs_triton_core.untrusted.terminal import Line, print_json, print_lines, print_table

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
    name, known = arguments.code, [*_entries()]
    found = [each for each in known if each[0] == name] or [
        (code, entry)
        for code, entry in known
        if code.startswith(f"{name.rstrip('-')}-") or entry.get("group") == name.replace("-", "_")
    ]
    if not found:
        near = closest(name, (code for code, _ in known))
        hint = f'did you mean "{near}"?' if near else "write a code that a finding has in brackets"
        raise InvalidValueError(
            f'CODE: no finding and no group has this code, got "{name}"; {hint}'
        )
    if arguments.json:
        print_json({"codes": [{"code": code, **entry} for code, entry in found]})
    elif found[0][0] == name:
        print_lines(*(line for code, entry in found for line in _lines(code, entry)))
    else:
        print_table(("code", "meaning"), ((code, entry["title"]) for code, entry in found))
    return EXIT_SUCCESS


def _lines(code: str, entry: Entry) -> Iterator[Line]:
    yield [(f"{code}: ", "1"), entry["title"]]
    for word, text in entry.items():
        if "\n" in text:
            yield [(f"{word}:", "1")]
            yield from textwrap.indent(text, "    ").splitlines()
        elif text and word != "title":
            yield [(f"{word}: ", "1"), text]


def _entries() -> Iterator[tuple[str, Entry]]:
    for name in _CATALOGUES:
        if find_spec(name.partition(".")[0]) is not None:
            yield from import_module(name).entries()
    for failure in known_failures():
        (first, *others), fix = failure.filled()
        yield (
            failure.id,
            {
                "title": (
                    f"{first[:1].upper() if first.split()[0].isalpha() else first[:1]}{first[1:]}."
                ),
                "message": failure.example,
                "where": failure.where,
                "other causes": "; or ".join(others),
                "fix": fix,
                "see": ", ".join(failure.keywords),
                "source": failure.source,
            },
        )
