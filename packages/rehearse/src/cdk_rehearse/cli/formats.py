"""Prints a rehearsal as text, as JSON, and as code hosts show findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

from cdk_rehearse.cli.text import coverage_sentence, report_lines
from cdk_rehearse.cli.text_parts import shortened_notes
from cdk_rehearse.updates.codes import CODES
from cdk_rehearse.updates.report import Problem, Rehearsal
from constructs_triton_core.code_hosts import (
    Row,
    github_command,
    github_notice,
    line_hash,
    print_commands,
    sarif,
    sarif_rule,
    sentence,
    text_to_hash,
)
from constructs_triton_core.program.output_formats import print_or_write
from constructs_triton_core.untrusted.terminal import print_json, print_lines

__all__ = ["FORMATS", "print_rehearsal"]

_MOST_BYTES = 10_000_000


def print_rehearsal(
    found: Rehearsal,
    output_format: str,
    output_file: str | None = None,
    *,
    calm: Rehearsal | None = None,
) -> None:
    """Print a rehearsal in a format, or write it to a file.

    Args:
        found: The rehearsal.
        output_format: The format.
        output_file: Where to write it. Default: standard output.
        calm: What was known of it before steps failed, which a text has first. Default: everything.
    """
    print_or_write(partial(FORMATS[output_format], found, calm), output_file)


def _print_text(found: Rehearsal, calm: Rehearsal | None) -> None:
    print_lines(*report_lines(found, calm))


def _print_json(found: Rehearsal, _: Rehearsal | None) -> None:
    document = asdict(found)
    document["problems"] = [problem.to_dict() for problem in found.problems]
    document["acknowledged"] = [problem.to_dict() for problem in found.acknowledged]
    print_json(document)


def _print_github(found: Rehearsal, calm: Rehearsal | None) -> None:
    """Print a command for each problem, how much is simulated, and the text for the log."""
    print_commands(map(github_command, _rows(found)))
    print_commands(map(github_notice, [coverage_sentence(found), *_way_to_lines(found)]))
    _print_text(found, calm)


def _print_sarif(found: Rehearsal, _: Rehearsal | None) -> None:
    """Print the problems of a rehearsal as SARIF."""
    rows = _rows(found)
    driver = {"name": "cdk-rehearse", "version": version("cdk-rehearse")}
    rules = {row.code: _rule(row.code) for row in rows}
    opaque = (f"not simulated: {note}" for note in _notes(found))
    notes = [coverage_sentence(found), *_way_to_lines(found), *opaque]
    properties = {"stacks": dict(found.status)}
    print_json(sarif(driver, rules, rows, notes, properties))


FORMATS: Mapping[str, Callable[[Rehearsal, Rehearsal | None], None]] = {
    "text": _print_text,
    "json": _print_json,
    "sarif": _print_sarif,
    "github": _print_github,
}
"""What prints a rehearsal in each format."""


def _notes(found: Rehearsal) -> Iterator[str]:
    yield from map(found.named, shortened_notes(found.not_simulated))


def _way_to_lines(found: Rehearsal) -> Iterator[str]:
    """How to get the lines of the app, if the assembly has none; said once."""
    if found.lacks_lines:
        yield (
            "the problems are shown in the template, because the assembly has no lines of the app; "
            "run `JSII_HOST_STACK_TRACES=1 npx cdk synth`, and rehearse again"
        )


def _rows(found: Rehearsal) -> list[Row]:
    """The problems, errors first: code hosts cut off what is too much."""
    problems = sorted(found.problems, key=lambda problem: problem.severity != "error")
    return [_row(found, problem) for problem in problems]


def _row(found: Rehearsal, problem: Problem) -> Row:
    """Return a problem as a row of a report for code hosts."""
    place = problem.place or problem.template
    text = f"{found.place_of(problem)}: {problem.message}"
    message = found.named(f"{text}; {problem.hint}" if problem.hint else text)
    fingerprint = ""
    if place is not None:
        fingerprint = line_hash(text_to_hash(place.file, _MOST_BYTES), place.line)
    return Row(
        problem.code,
        problem.severity,
        message,
        place,
        fingerprint,
        construct=problem.construct,
        properties={"stack": problem.stack, "logicalId": problem.path},
    )


def _rule(code: str) -> dict[str, Any]:
    """Return the description of a code for SARIF."""
    known = CODES[code]
    fix = sentence(known.fix or "see the message of each problem")
    return sarif_rule(
        code,
        known.severity,
        summary=known.meaning,
        reason=known.meaning,
        help_text=f"To fix it: {fix} Basis: {known.basis}. Source: {known.source}.",
        tags=["cdk", "cloudformation"],
    )
