"""``constructs-triton explain``: what a finding of a check, a rehearsal or a diagnosis means."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.util import find_spec

from constructs_triton_core.facts.failures import Failure, known_failures, unknown_values
from triton_model_check.cli import explain
from triton_model_check.cli.explain import Entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments, which are those of the checker's command."""
    explain.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is known about a code or a group; return 0."""
    others = {each.id: _entry(each) for each in known_failures()}
    if find_spec("cdk_rehearse") is not None:
        others |= dict(_rehearsal_entries())
    return explain.run(arguments, others)


def _entry(failure: Failure) -> Entry:
    """Return an entry of the catalogue of diagnoses, with the names of its example."""
    match = failure.pattern.search(failure.example)
    groups = match.groupdict() if match else {}
    names = {**dict.fromkeys(groups, "unknown"), **unknown_values()}
    names |= {name: value for name, value in groups.items() if value}
    first, *others = (text.format(**names) for text in failure.causes)
    return {
        "title": f"{first[:1].upper()}{first[1:]}.",
        "message": failure.example,
        "where": failure.where,
        "other causes": "; or ".join(others),
        "fix": failure.fix.format(**names),
        "see": ", ".join(failure.keywords),
        "source": failure.source,
    }


def _rehearsal_entries() -> Iterator[tuple[str, Entry]]:
    from cdk_rehearse.updates.codes import CODES  # noqa: PLC0415 - an extra installs it

    for code, each in CODES.items():
        yield (
            code,
            {
                "title": each.meaning,
                "severity": str(each.severity),
                "basis": each.basis,
                "source": each.source,
                "fix": each.fix or "the problem says what to change in this update",
            },
        )
