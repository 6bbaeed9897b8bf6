"""Checks what uv installs as it is: the packages of its export of a ``uv.lock``, and of our own
lock file.

Both may come from another person, like the lines that ``line_checks`` refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.artifacts.environments.line_checks import check_lines

_VERSION_ONLY = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._, -]*\])?\s*==[^\s/\\;@]+(?:\s*;.*)?"
)
_HASHES = re.compile(r"\s--hash=\w+:[0-9a-f]+(?=\s|$)")


def check_exported(place: str, lines: Iterable[str]) -> None:
    """Check the lines that uv has exported from a ``uv.lock``: packages of an index with their
    versions.

    Raises:
        InvalidValueError: a line is something else.
    """
    for line in lines:
        if not _VERSION_ONLY.fullmatch(line):
            raise InvalidValueError(
                f"{place}: can contain only packages with a version, got {line!r}; build a wheel "
                "of it with `uv build --wheel`, name the folder of the wheel in find-links of "
                "[tool.uv], remove the package from [tool.uv.sources], and run `uv lock`"
            )


def check_pins(place: str, pins: str) -> None:
    """Check the packages of a lock file, which uv downloads as they are.

    Raises:
        InvalidValueError: a line is not a package with a version, or a wheel, and its hashes.
    """
    for line in _pins(pins):
        requirement = _HASHES.sub("", line).strip()
        if requirement.startswith("-") or " --" in requirement:
            raise InvalidValueError(
                f"{place}: its lock file contains {requirement!r}, which `constructs-triton env "
                "build` does not write; delete the lock file, and run the command again"
            )
        check_lines(place, [requirement])


def _pins(pins: str) -> Iterator[str]:
    for line in pins.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield " ".join(line.split())
