"""What the language server tells an editor that it can do, and what it does for each message."""

from __future__ import annotations

import argparse

from lsprotocol import types

from triton_model_check.editor.answers import (
    actions_at,
    completions_at,
    definitions_at,
    hover_at,
)
from triton_model_check.editor.diagnostics import FIX_ALL
from triton_model_check.editor.server import SECONDS_AFTER_CHANGE, EditorServer

_WATCHED = "**/*.{pbtxt,py,toml,onnx,pt,plan,json}"
"""The files whose change on disk can change what is found in an open one."""


def new_server(arguments: argparse.Namespace) -> EditorServer:
    """Return a server for one editor.

    Args:
        arguments: The options of the command line.
    """
    server = EditorServer(arguments)
    _receive_changes(server)
    _answer_questions(server)
    return server


def _receive_changes(server: EditorServer) -> None:
    """Declare what follows from changes in the editor."""

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.use_options(params.initialization_options)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        _watch_files(server)
        server.load_rules()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.schedule(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.schedule(params.text_document.uri, SECONDS_AFTER_CHANGE)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.schedule(params.text_document.uri, SECONDS_AFTER_CHANGE)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed_on_disk(_: types.DidChangeWatchedFilesParams) -> None:
        server.schedule_all()


def _watch_files(server: EditorServer) -> None:
    """Ask the editor to report changes on disk, if it can."""
    workspace = server.client_capabilities.workspace
    watching = workspace and workspace.did_change_watched_files
    if not (watching and watching.dynamic_registration):
        return
    options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(_WATCHED)])
    registration = types.Registration("files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
    server.client_register_capability(types.RegistrationParams([registration]))


def _answer_questions(server: EditorServer) -> None:
    """Declare what an editor can ask."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        return hover_at(server, server.document(params.text_document.uri), params.position)

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION,
        types.CompletionOptions(trigger_characters=[" ", ":", '"']),
    )
    def completion(params: types.CompletionParams) -> types.CompletionList | None:
        document = server.document(params.text_document.uri)
        trigger = params.context.trigger_character if params.context else None
        return completions_at(server, document, params.position, trigger)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL]),
    )
    async def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        return await actions_at(server, server.document(params.text_document.uri), params)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> list[types.Location]:
        return definitions_at(server, server.document(params.text_document.uri), params.position)
