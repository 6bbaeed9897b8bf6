"""The answers to what an editor asks about a place in a document."""

from __future__ import annotations

from lsprotocol import types
from pygls.uris import from_fs_path

from triton_model_check.editor.checking import encoded
from triton_model_check.editor.completion import Completion, complete
from triton_model_check.editor.diagnostics import (
    FIX_ALL,
    findings_at,
    fix_actions,
    fix_all_action,
)
from triton_model_check.editor.ensemble_names import Declaration, EnsembleNames
from triton_model_check.editor.hover import describe_place, explain_findings
from triton_model_check.editor.lines import Lines
from triton_model_check.editor.schema_help import Proposal
from triton_model_check.editor.server import Document, EditorServer
from triton_model_check.untrusted.unsaved_files import unsaved_files


def hover_at(
    server: EditorServer, document: Document, position: types.Position
) -> types.Hover | None:
    """Return what is known about a place: the findings there, and the field or its value."""
    lines = server.lines_of(document.text)
    place = types.Range(position, position)
    paragraphs = explain_findings(findings_at(server.known_findings(document), lines, place))
    if document.is_config:
        described = describe_place(document.text, lines.offset(position))
        if described:
            paragraphs.append(described)
    if not paragraphs:
        return None
    text = "\n\n---\n\n".join(paragraphs)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))


def completions_at(
    server: EditorServer, document: Document, position: types.Position, trigger: str | None
) -> types.CompletionList | None:
    """Return what can be written at a place of a configuration."""
    if not document.is_config:
        return None
    lines = server.lines_of(document.text)
    with unsaved_files(_unsaved(server, document)):
        found = complete(document.text, lines.offset(position), document.file)
    # A blank is typed for many reasons: only behind a colon it asks for a value.
    if found is None or (trigger is not None and not found.is_value):
        return None
    place = lines.range(*found.span)
    has_snippets = _has_snippets(server)
    items = [
        _completion_item(proposal, place, number, found, has_snippets=has_snippets)
        for number, proposal in enumerate(found.proposals)
    ]
    return types.CompletionList(is_incomplete=False, items=items)


def _completion_item(
    proposal: Proposal, place: types.Range, number: int, found: Completion, *, has_snippets: bool
) -> types.CompletionItem:
    kind = types.CompletionItemKind.EnumMember if found.is_value else types.CompletionItemKind.Field
    written = proposal.snippet if has_snippets else proposal.plain
    snippet = types.InsertTextFormat.Snippet
    plain = types.InsertTextFormat.PlainText
    return types.CompletionItem(
        label=proposal.label,
        kind=kind,
        detail=proposal.detail,
        documentation=proposal.comment or None,
        # The order of the schema, in which the most common fields come first.
        sort_text=f"{number:03}",
        insert_text_format=snippet if has_snippets else plain,
        text_edit=types.TextEdit(place, written),
    )


def _has_snippets(server: EditorServer) -> bool:
    """Whether the editor puts the cursor where a text has ``$0``."""
    asked = server.client_capabilities.text_document
    completion = asked and asked.completion
    item = completion and completion.completion_item
    return bool(item and item.snippet_support)


async def actions_at(
    server: EditorServer, document: Document, params: types.CodeActionParams
) -> list[types.CodeAction]:
    """Return the fixes of the findings in a range, and the action that applies all of them."""
    if document.file is None:
        return []
    findings = await server.findings_of(document)
    lines = server.lines_of(document.text)
    name = document.file.name
    only = params.context.only

    actions: list[types.CodeAction] = []
    if _is_asked(types.CodeActionKind.QuickFix.value, only):
        actions += fix_actions(findings, name, document.uri, lines, params.range)
    if only and _is_asked(FIX_ALL, only):
        of_all = fix_all_action(findings, name, document.uri, lines)
        if of_all is not None:
            actions.append(of_all)
    return actions


def _is_asked(kind: str, only: object) -> bool:
    """Whether an editor asks for a kind of actions, or for a kind that has it below."""
    if not isinstance(only, list | tuple) or not only:
        return True
    asked = (str(getattr(each, "value", each)) for each in only)
    return any(kind == each or kind.startswith(f"{each}.") for each in asked)


def definitions_at(
    server: EditorServer, document: Document, position: types.Position
) -> list[types.Location]:
    """Return where the model or the tensor at a place of an ensemble is declared."""
    if document.file is None or not document.is_config:
        return []
    offset = server.lines_of(document.text).offset(position)
    with unsaved_files(_unsaved(server, document)):
        found = EnsembleNames(document.file, document.text).declarations(offset)
    return [_location(server, document, each) for each in found]


def _location(server: EditorServer, document: Document, declaration: Declaration) -> types.Location:
    is_here = document.file is not None and declaration.path == document.file.path
    uri = document.uri if is_here else from_fs_path(str(declaration.path))
    lines: Lines = server.lines_of(declaration.text)
    return types.Location(str(uri), lines.range(*declaration.span))


def _unsaved(server: EditorServer, document: Document) -> dict[str, bytes]:
    """Return what the editor has of the repository of a document, by path."""
    if document.file is None:
        return {}
    return encoded(server.texts_of(document.file.repository))
