"""Takes the fixes from findings whose file is not in the repository that is checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from constructs_triton_core.findings import Finding
from triton_model_check.checks.report import Report

__all__ = ["is_in", "without_fixes_elsewhere"]


def without_fixes_elsewhere(report: Report, root: Path) -> Report:
    """Return the report; a finding in a file of another project says where it can be fixed."""
    findings = [*_findings(report.findings, root)]
    return report.with_findings(findings, report.ignored) if findings else report


def is_in(root: Path, path: str) -> bool:
    """Return whether a file of the repository is in it when links are followed."""
    try:
        return (root / path).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # links that lead to each other
        return False


def _findings(findings: Iterable[Finding], root: Path) -> Iterable[Finding]:
    for finding in findings:
        if finding.fix is None or is_in(root, finding.fix.edits[0].path):
            yield finding
            continue
        reason = "the file is outside of this repository, so --fix leaves it alone"
        hint = f"{finding.hint}; {reason}" if finding.hint else reason
        yield replace(finding, fix=None, hint=hint)
