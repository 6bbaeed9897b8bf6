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
    if not any(each.fix for each in check(root).report.findings):
        return False
    with temporary_folder() as folder:
        copy = folder.resolve() / root.resolve().name
        copy_to_fix(root, copy)
        _, _, files = fix_all(check, copy, is_unsafe=arguments.unsafe_fixes)
        for path in sorted(files):
            original = root / path.relative_to(copy)
            name, paths = original.as_posix(), (original, path)
            old, new = (decode(read_regular(each)).splitlines() for each in paths)
            print_lines(*unified_diff(old, new, name, name, lineterm=""))
    return bool(files)


def fix_all(check: Check, root: Path, *, is_unsafe: bool) -> tuple[Checked, int, set[Path]]:
    """Apply fixes until none is left; return what remains, the number of fixes,
    and the changed files.
    """
    checked, count, files = check(root), 0, set[Path]()
    for _ in range(_MOST_ROUNDS):
        changed, applied = _fixed(checked.report.findings, root, is_unsafe=is_unsafe)
        if not changed:
            break
        _write(changed)
        count, files, checked = count + applied, files | changed.keys(), check(root)
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
        waits = any(
            new.start <= old.end and old.start <= new.end for new in fix.edits for old in edits
        )
        if not waits:
            chosen[path] = [*edits, *fix.edits]
            count += 1
    changed = {path: _edited(path, edits) for path, edits in chosen.items()}
    return {path: text for path, text in changed.items() if text is not None}, count


def _edited(path: Path, edits: Iterable[Edit]) -> str | None:
    """Return the new text of a file, or ``None`` if a configuration could
    not be parsed any more.
    """
    before, pieces, last = decode(read_regular(path)), [], 0
    for edit in sorted(edits, key=lambda each: each.start):
        pieces += [before[last : edit.start], edit.text]
        last = edit.end
    after = "".join((*pieces, before[last:]))
    is_broken = (
        path.suffix == ".pbtxt" and read_text_fault(after)[1] and not read_text_fault(before)[1]
    )
    return None if is_broken else after


def _write(changed: dict[Path, str]) -> None:
    """Replace the files, each in one step, in the encoding that they have."""
    for path in changed:
        if not (
            path.stat().st_mode & 0o200
            and os.access(path, os.W_OK)
            and os.access(path.parent, os.W_OK)
        ):
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
