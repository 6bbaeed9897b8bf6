"""``--fix``, ``--diff`` and ``--unsafe-fixes``: apply the fixes of findings to files,
or show them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from difflib import unified_diff
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Edit, Finding
from constructs_triton_core.untrusted.drafts import temporary_folder
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.untrusted.terminal import print_lines, print_note
from constructs_triton_core.untrusted.written_files import write_whole
from triton_model_check.cli.copied_repository import copy_to_fix
from triton_model_check.cli.fixable import is_in
from triton_model_check.cli.target_check import Checked
from triton_model_check.model_config.text import decode, read_text_fault
from triton_model_check.reporting.text import plural

Check = Callable[[Path], Checked]
"""Checks a repository, whose folder it is given."""

_MOST_ROUNDS = 10


def with_fixes(check: Check, root: Path, *, is_unsafe: bool) -> Checked:
    """Correct files and check again; return what remains.

    Raises:
        InvalidValueError: a file cannot be written.
    """
    checked, count, files = fix_all(check, root, is_unsafe=is_unsafe)
    print_note(f"fixed {plural(count, 'problem')} in {plural(len(files), 'file')}")
    return checked


def print_differences(check: Check, root: Path, arguments: argparse.Namespace) -> bool:
    """Print what ``--fix`` would change, which is tried in a copy;
    return whether it is anything.
    """
    if not any(finding.fix for finding in check(root).report.findings):
        return False

    with temporary_folder() as folder:
        copy = folder.resolve() / root.resolve().name
        copy_to_fix(root, copy)
        _, _, files = fix_all(check, copy, is_unsafe=arguments.unsafe_fixes)
        for path in sorted(files):
            original = root / path.relative_to(copy)
            name = original.as_posix()
            old = decode(read_regular(original)).splitlines()
            new = decode(read_regular(path)).splitlines()
            print_lines(*unified_diff(old, new, name, name, lineterm=""))
    return bool(files)


def fix_all(check: Check, root: Path, *, is_unsafe: bool) -> tuple[Checked, int, set[Path]]:
    """Apply fixes until none is left; return what remains, the number of fixes,
    and the changed files.
    """
    checked = check(root)
    count = 0
    files: set[Path] = set()
    for _ in range(_MOST_ROUNDS):
        changed, applied = _fixed(checked.report.findings, root, is_unsafe=is_unsafe)
        if not changed:
            break
        _write(changed)
        count += applied
        files |= changed.keys()
        checked = check(root)
    return checked, count, files


def _fixed(
    findings: Iterable[Finding], root: Path, *, is_unsafe: bool
) -> tuple[dict[Path, str], int]:
    """Return the new text of each file, and how many fixes it has;
    those that overlap another one wait.
    """
    chosen: dict[Path, list[Edit]] = {}
    count = 0
    for finding in findings:
        fix = finding.fix
        if fix is None or not (fix.is_safe or is_unsafe):
            continue
        if not is_in(root, fix.edits[0].path):  # a link may lead to another project's file
            continue

        path = (root / fix.edits[0].path).resolve()
        edits = chosen.get(path, [])
        if not any(_overlaps(edit, edits) for edit in fix.edits):
            chosen[path] = [*edits, *fix.edits]
            count += 1

    changed: dict[Path, str] = {}
    for path, edits in chosen.items():
        text = _edited(path, edits)
        if text is not None:
            changed[path] = text
    return changed, count


def _overlaps(edit: Edit, others: Iterable[Edit]) -> bool:
    """Whether an edit changes, or touches, what another one changes."""
    return any(edit.start <= other.end and other.start <= edit.end for other in others)


def _edited(path: Path, edits: Iterable[Edit]) -> str | None:
    """Return the new text of a file, or ``None`` if a configuration could
    not be parsed any more.
    """
    before = decode(read_regular(path))
    pieces: list[str] = []
    last = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces += [before[last : edit.start], edit.text]
        last = edit.end
    after = "".join((*pieces, before[last:]))

    if path.suffix == ".pbtxt" and _is_broken(after) and not _is_broken(before):
        return None
    return after


def _is_broken(text: str) -> bool:
    """Whether a configuration cannot be parsed."""
    _, fault = read_text_fault(text)
    return fault is not None


def _write(changed: dict[Path, str]) -> None:
    """Replace the files, each in one step, in the encoding that they have."""
    for path in changed:
        if not _is_writable(path):
            raise InvalidValueError(f"{path}: cannot be fixed: it is read-only; make it writable")

    for path, text in changed.items():
        try:
            content = read_regular(path)
            encoding = "utf-8" if decode(content).encode() == content else "latin-1"
            write_whole(path, text.encode(encoding))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidValueError(
                f"{path}: cannot be fixed ({reason}); check its folder and the free space of the "
                "disk, or edit the file by hand"
            ) from error
        except UnicodeError as error:
            raise InvalidValueError(
                f"{path}: cannot be fixed ({error}); edit it by hand"
            ) from error


def _is_writable(path: Path) -> bool:
    """Whether a file may be replaced; root could replace a file that is marked as read-only."""
    is_marked = bool(path.stat().st_mode & 0o200)
    return is_marked and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
