"""The errors that cfn-lint finds in a template that the CDK did not write.

The CDK validates what it writes with the same rules, at synth. cfn-lint runs in a process of its
own, beside the simulation, because its import takes seconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from constructs_triton_core.processes.children import NO_SETTINGS, python_command, run_child

from .codes import CODES
from .report import Problem

_CODE = "rehearse-template-error"
_MOST_SECONDS = 120.0
_PROGRAM = "from cfnlint.runner import main; main()"

Source = str | os.PathLike[str] | object
"""OLD or NEW, as the user gave it."""


class TemplateErrors:
    """The errors of NEW that OLD does not have."""

    def __init__(self) -> None:
        self.found: tuple[Problem, ...] = ()


@contextmanager
def template_errors(old: Source, new: Source) -> Iterator[TemplateErrors]:
    """Look for errors while the block runs; they are known after it."""
    errors = TemplateErrors()
    path = _written_by_others(new)
    if path is None:
        yield errors
        return
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(_errors_of, path)
        yield errors
        found = running.result()
    # What is deployed was accepted.
    before = _written_by_others(old) if found else None
    known = {_key(error) for error in _errors_of(before)} if before else set()
    errors.found = tuple(_problem(path, error) for error in found if _key(error) not in known)


def _written_by_others(source: Source) -> Path | None:
    """The file of a template, if no cloud assembly of the CDK contains it."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(source)
    if not path.is_file() or (path.parent / "manifest.json").exists():
        return None
    return path


def _errors_of(path: Path) -> list[dict[str, Any]]:
    """What cfn-lint prints; nothing if it cannot be run: the rehearsal does not need it."""
    command = python_command(
        _PROGRAM, "--format", "json", "--ignore-checks", "W", "I", "--", str(path.absolute())
    )
    try:
        # A .cfnlintrc in the folder where it starts names modules that cfn-lint imports as rules.
        output = run_child(command, seconds=_MOST_SECONDS, cwd=NO_SETTINGS).stdout
        found: list[dict[str, Any]] = json.loads(output or "[]")
    except (OSError, ValueError):
        return []
    return found


def _key(error: dict[str, Any]) -> tuple[str, str]:
    return error["Rule"]["Id"], error["Message"]


def _problem(path: Path, error: dict[str, Any]) -> Problem:
    rule = error["Rule"]
    location = error["Location"]
    code = CODES[_CODE]
    section, *names = location["Path"] or [""]
    place = str(names[0]) if section == "Resources" and names else path.name
    line = location["Start"]["LineNumber"]
    message = f"{rule['Id']}: {error['Message']} (line {line} of {path.name})"
    return Problem(_CODE, code.severity, place, message, code.fix, rule["Source"])
