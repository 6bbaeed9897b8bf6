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
    return [line for each in before if each.fix for line in _broken(each, before, root, target)]


def _broken(
    finding: Finding, before: Iterable[Finding], root: Path, target: Target | None
) -> Iterator[str]:
    assert finding.fix is not None
    (path,) = {root / edit.path for edit in finding.fix.edits}
    content = path.read_bytes()
    text = fixed = decode(content)
    for edit in reversed(finding.fix.edits):
        fixed = f"{fixed[: edit.start]}{edit.text}{fixed[edit.end :]}"
    path.write_bytes(fixed.encode())
    after = check(root, target).findings
    path.write_bytes(content)
    is_fault = finding.code.startswith("text-")  # it hides what is behind it
    if any(
        _is_same(finding, each) and (not is_fault or each.location == finding.location)
        for each in after
    ):
        yield f"{finding} is left by {finding.fix}"
    if not is_fault:
        yield from (f"{finding}: brings {new}" for new in _codes(after) - _codes(before))
    yield from (f"{finding}: removes {each}" for each in _comments(text) if each not in fixed)
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
    lines, depth = [], 0
    for number, line in enumerate(text.splitlines()):
        is_outside = depth == 0 and bool(line.strip())
        lines += [f"#before{number}"] if is_outside else []
        depth += sum(
            {"{": 1, "[": 1, "}": -1, "]": -1}.get(token, 0) for token in TOKEN.findall(line)
        )
        lines.append(f"{line}  #after{number}" if is_outside and depth == 0 else line)
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
