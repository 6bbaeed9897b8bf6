"""``triton-model-check explain``: what a finding means, by its code."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator, Mapping

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Severity
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_core.spelling import quoted
from constructs_triton_core.untrusted.terminal import Line, print_json, print_lines, print_table
from triton_model_check.facts.compatibility import RULES as COMPATIBILITY_RULES
from triton_model_check.model_config.checks import RULES
from triton_model_check.model_config.choosing.choice import group_of
from triton_model_check.model_config.rules import Rule
from triton_model_check.model_config.target import PLATFORMS

__all__ = ["Entry"]

Entry = Mapping[str, str]
"""What is known about a code, by the words that are printed before it; ``title`` comes first."""

_IN_FINDING = "the finding says what to change"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Explain the code of a finding: what the rule says and why, how serious it is, and how to fix it. "
        "With the beginning of codes or a group of checks, list its codes."
    )
    parser.add_argument(
        "code", metavar="CODE", help="for example text-enum; or a group, for example ensemble"
    )
    add_common(parser, "--json")


def run(arguments: argparse.Namespace, others: Mapping[str, Entry] | None = None) -> int:
    """Print what is known about a code or a group.

    ``others`` is what other packages know about their codes. By default only the checks are known.

    Raises:
        InvalidValueError: no code and no group has this name.
    """
    name, catalogues = arguments.code, (dict(_entries()), others or {})
    codes = {each for known in catalogues for each in known}
    prefix = f"{name.rstrip('-')}-"
    group = group_of(name) | {each for each in codes if each.startswith(prefix)}
    chosen = {name} if name in codes else group
    found = [(code, entry) for known in catalogues for code, entry in known.items() if code in chosen]
    if not found:
        near = difflib.get_close_matches(name, codes, cutoff=0.5)
        hint = f"the nearest are {quoted(near)}" if near else "write a code that a finding has in brackets"
        raise InvalidValueError(f'CODE: no finding and no group has this code, got "{name}"; {hint}')
    if arguments.json:
        print_json({"codes": [{"code": code, **entry} for code, entry in found]})
    elif name in codes:
        print_lines(*(line for code, entry in found for line in _lines(code, entry)))
    else:
        print_table(("code", "meaning"), ((code, entry["title"]) for code, entry in found))
    return EXIT_SUCCESS


def _lines(code: str, entry: Entry) -> Iterator[Line]:
    yield [(f"{code}: ", "1"), entry["title"]]
    for word, text in entry.items():
        if text and word != "title":
            yield [(f"{word}: ", "1"), text]


def _entries() -> Iterator[tuple[str, Entry]]:
    for code, rule in RULES.items():
        yield code, _entry(rule)
    for each in COMPATIBILITY_RULES:
        effect = "the deployment fails" if each.severity is Severity.ERROR else "it deploys"
        yield (
            each.code,
            {
                "title": f"{each.summary[:1].upper()}{each.summary[1:]}.",
                "severity": f"{each.severity}: {effect}",
                "source": each.source,
                "fix": _IN_FINDING,
            },
        )


def _entry(rule: Rule) -> Entry:
    effect = "Triton rejects the model" if rule.rejects else "the model loads, but cannot be served"
    if rule.severity is Severity.WARNING:
        effect = "the model loads and serves"
    return {
        "title": _plain(rule.summary),
        "why": _plain(rule.reason) if rule.reason != rule.summary else "",
        "severity": f"{rule.severity}: {effect}",
        "targets": ", ".join(rule.platforms) if len(rule.platforms) < len(PLATFORMS) else "",
        "versions": " and ".join(
            f"{word} {each}" for word, each in (("from", rule.since), ("before", rule.before)) if each
        ),
        "source": rule.source,
        "fix": rule.hint or _IN_FINDING,
        "automatic fix": f"none: {rule.fix_reason}" if rule.fix_reason else "some findings, by `check --fix`",
    }


def _plain(docstring: str) -> str:
    return docstring.replace("``", "`")
