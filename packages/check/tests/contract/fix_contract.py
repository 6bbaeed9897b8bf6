"""What every fix promises: it removes its finding, brings no other one, and keeps the comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from constructs_triton_core.findings import Finding
from triton_model_check.checks.report import Report
from triton_model_check.cli.fixing import fix_all
from triton_model_check.cli.target_check import Checked
from triton_model_check.model_config.locations import TOKEN
from triton_model_check.model_config.target import Target
from triton_model_check.model_config.text import decode
from triton_model_check.model_repository import ModelRepository


def check(root: Path, target: Target | None) -> Report:
    """Check a repository as it is on disk."""
    return ModelRepository.from_directory(root).check(target, is_packed=False)


def broken_promises(root: Path, target: Target | None) -> list[str]:
    """Apply each fix of a repository alone; return what it leaves, what it brings,
    and lost comments.
    """
    before = check(root, target).findings
    broken: list[str] = []
    for finding in before:
        if finding.fix:
            broken += _broken(finding, before, root, target)
    return broken


def _broken(
    finding: Finding, before: Iterable[Finding], root: Path, target: Target | None
) -> Iterator[str]:
    """Apply the fix of a finding, check again, undo it, and yield what is wrong with it."""
    assert finding.fix is not None
    (path,) = {root / edit.path for edit in finding.fix.edits}
    content = path.read_bytes()
    text = decode(content)
    fixed = text
    for edit in reversed(finding.fix.edits):
        fixed = f"{fixed[: edit.start]}{edit.text}{fixed[edit.end :]}"

    path.write_bytes(fixed.encode())
    after = check(root, target).findings
    path.write_bytes(content)

    is_fault = finding.code.startswith("text-")  # it hides what is behind it
    same = [other for other in after if _is_same(finding, other)]
    if is_fault:
        same = [other for other in same if other.location == finding.location]
    if same:
        yield f"{finding} is left by {finding.fix}"
    if not is_fault:
        for new in _codes(after) - _codes(before):
            yield f"{finding}: brings {new}"
    for comment in _comments(text):
        if comment not in fixed:
            yield f"{finding}: removes {comment}"
    if "\r\n" in text and "\n" in fixed.replace("\r\n", ""):
        yield f"{finding}: mixes line ends"


def _is_same(one: Finding, other: Finding) -> bool:
    return (one.code, one.path, one.message) == (other.code, other.path, other.message)


def _codes(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    return Counter((each.code, each.path) for each in findings)


def _comments(text: str) -> list[str]:
    return [each for each in text.split() if each.startswith(("#before", "#after"))]


def add_comments(root: Path) -> None:
    """Add comments around each field of the top of each configuration,
    and the line ends of Windows.
    """
    for path in root.glob("*/config.pbtxt"):
        if path.is_file() and not path.is_symlink():
            path.write_bytes(_with_comments(decode(path.read_bytes())).encode())


def _with_comments(text: str) -> str:
    """Return a text with a comment before and after each field of the top."""
    lines: list[str] = []
    depth = 0
    for number, line in enumerate(text.splitlines()):
        is_first_of_field = depth == 0 and bool(line.strip())
        if is_first_of_field:
            lines.append(f"#before{number}")
        for token in TOKEN.findall(line):
            if token in ("{", "["):
                depth += 1
            elif token in ("}", "]"):
                depth -= 1
        is_whole_field = is_first_of_field and depth == 0
        lines.append(f"{line}  #after{number}" if is_whole_field else line)
    return "\r\n".join(lines)


def assert_ends(root: Path, target: Target | None) -> None:
    """Check that applying all fixes ends, and that a second run changes nothing."""
    for is_unsafe in (False, True):
        _fix(root, target, is_unsafe=is_unsafe)
        assert _fix(root, target, is_unsafe=is_unsafe) == (0, set())


def _fix(root: Path, target: Target | None, *, is_unsafe: bool) -> tuple[int, set[Path]]:
    _, count, files = fix_all(
        lambda path: Checked(check(path, target), target), root, is_unsafe=is_unsafe
    )
    return count, files
