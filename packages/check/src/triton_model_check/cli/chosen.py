"""What options and settings choose of a report."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.checks.report import Report
from triton_model_check.choosing.settings import Settings


def add_codes(parser: argparse.ArgumentParser) -> None:
    """Declare which findings are reported."""
    for option, words in (("--select", "print only"), ("--ignore", "do not print")):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="CODES",
            help=f"{words} these checks: codes or groups, separated by commas; may be repeated",
        )


def add_statistics(parser: argparse.ArgumentParser) -> None:
    """Declare that findings are counted."""
    parser.add_argument(
        "--statistics",
        action="store_true",
        help="print how often each code was found, not each finding",
    )


def listed(values: Iterable[str]) -> list[str]:
    """Return the names of an option that may be repeated, separated by commas."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def choose(
    report: Report, settings: Settings, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> Report:
    """Return what the settings choose of a report, together with what options add.

    Raises:
        InvalidValueError: there is no such code and no such group, or it cannot be ignored.
    """
    tables = settings.per_model_ignores, settings.per_file_ignores
    if not (select or ignore or settings.select or settings.ignore or any(tables)):
        return report
    from triton_model_check.choosing.choice import Choice  # noqa: PLC0415 - loads the rules

    Choice.of(select, ignore)  # an error of the options is not one of the file
    try:
        choice = Choice.of((*settings.select, *select), (*settings.ignore, *ignore), *tables)
    except InvalidValueError as error:
        raise InvalidValueError(f"{settings.file}: {error}") from None
    return choice.apply(report)
