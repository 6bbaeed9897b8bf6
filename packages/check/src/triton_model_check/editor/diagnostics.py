"""Findings as the protocol has them: diagnostics, and the edits of their fixes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    CodeDescription,
    Diagnostic,
    DiagnosticSeverity,
    Range,
    TextEdit,
    WorkspaceEdit,
)

from constructs_triton_core.findings import Edit, Finding, Severity
from constructs_triton_core.visible_text import visible_lines
from triton_model_check.editor.lines import Lines
from triton_model_check.editor.pages import page_of, site

PROGRAM = "triton-model-check"
FIX_ALL = f"{CodeActionKind.SourceFixAll.value}.{PROGRAM}"
"""The kind of the action that applies all fixes; ``source.fixAll`` asks for it too."""

_SEVERITIES = {
    Severity.ERROR: DiagnosticSeverity.Error,
    Severity.WARNING: DiagnosticSeverity.Warning,
}


def diagnostic(finding: Finding, lines: Lines) -> Diagnostic:
    """Return a finding with its place in a text.

    Args:
        finding: The finding.
        lines: The lines of the text in which it is shown.
    """
    page = page_of(finding.code, site())
    message = finding.message
    # What is wrong with a file that no person reads is shown in the configuration.
    if finding.place and finding.place.file != finding.path:
        message = f"{finding.path}: {message}"
    if finding.hint:
        message += f"\nhint: {finding.hint}"
    return Diagnostic(
        range=_range_of(finding, lines),
        message=visible_lines(message),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=None if page is None else CodeDescription(page),
        source=PROGRAM,
    )


def findings_at(findings: Iterable[Finding], lines: Lines, place: Range) -> list[Finding]:
    """Return the findings of which a part is in a range."""
    return [each for each in findings if _touch(_range_of(each, lines), place)]


def fix_actions(
    findings: Iterable[Finding], name: str, uri: str, lines: Lines, place: Range
) -> list[CodeAction]:
    """Return an action for each finding in a range that ``check --fix`` corrects.

    Args:
        findings: The findings of the text.
        name: Path of the file in the repository.
        uri: Address of the document.
        lines: The lines of the text.
        place: What is selected in the editor.
    """
    actions: list[CodeAction] = []
    for finding in findings_at(findings, lines, place):
        edits = _safe_edits(finding, name)
        if not edits:
            continue
        actions.append(
            CodeAction(
                title=f"Fix {finding.code}: {_title_of(finding)}",
                kind=CodeActionKind.QuickFix,
                diagnostics=[diagnostic(finding, lines)],
                is_preferred=True,
                edit=_workspace_edit(uri, lines, edits),
            )
        )
    return actions


def fix_all_action(
    findings: Iterable[Finding], name: str, uri: str, lines: Lines
) -> CodeAction | None:
    """Return the action that applies all safe fixes that do not overlap; ``None`` without one."""
    chosen: list[Edit] = []
    for finding in findings:
        edits = _safe_edits(finding, name)
        if not any(_overlaps(edit, chosen) for edit in edits):
            chosen += edits
    if not chosen:
        return None
    return CodeAction(
        title=f"Apply all fixes of {PROGRAM}",
        kind=FIX_ALL,
        edit=_workspace_edit(uri, lines, chosen),
    )


def _range_of(finding: Finding, lines: Lines) -> Range:
    if finding.place is None:
        return lines.range(0, 0)
    return lines.range_of(finding.place)


def _touch(one: Range, other: Range) -> bool:
    return one.start <= other.end and other.start <= one.end


def _title_of(finding: Finding) -> str:
    """Return the hint on one line, or the message without one."""
    return visible_lines(finding.hint or finding.message).split("\n")[0]


def _safe_edits(finding: Finding, name: str) -> Sequence[Edit]:
    """Return the edits that ``--fix`` would apply to a file; none if they are in another one."""
    fix = finding.fix
    if fix is None or not fix.is_safe or any(edit.path != name for edit in fix.edits):
        return ()
    return fix.edits


def _overlaps(edit: Edit, others: Iterable[Edit]) -> bool:
    return any(edit.start <= other.end and other.start <= edit.end for other in others)


def _workspace_edit(uri: str, lines: Lines, edits: Iterable[Edit]) -> WorkspaceEdit:
    changes = [TextEdit(lines.range(edit.start, edit.end), edit.text) for edit in edits]
    return WorkspaceEdit(changes={uri: changes})
