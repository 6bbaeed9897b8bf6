"""A client of the language server for tests: pygls' own, in a thread, with calls that wait."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.uris import from_fs_path

T = TypeVar("T")

SECONDS = 60


def address(path: Path) -> str:
    """Return the address of a file."""
    return str(from_fs_path(str(path)))


class EditorClient:
    """An editor that has started the server as a process.

    Args:
        capabilities: What the editor can do. Default: nothing but what each one can.
        options: Its initializationOptions. Default: none.
    """

    def __init__(
        self, capabilities: types.ClientCapabilities | None = None, options: Any = None
    ) -> None:
        self.messages: list[str] = []
        self._published: dict[str, types.PublishDiagnosticsParams] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._news = asyncio.Condition()
        self._client = LanguageClient("tests", "1")
        self._receive()
        self.initialized = self._run(self._begin(capabilities, options))

    def _receive(self) -> None:
        async def published(params: types.PublishDiagnosticsParams) -> None:
            async with self._news:
                self._published[params.uri] = params
                self._news.notify_all()

        def said(params: types.ShowMessageParams | types.LogMessageParams) -> None:
            self.messages.append(params.message)

        feature: Any = self._client.feature  # it has no types
        feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published)
        feature(types.WINDOW_SHOW_MESSAGE)(said)
        feature(types.WINDOW_LOG_MESSAGE)(said)

    async def _begin(
        self, capabilities: types.ClientCapabilities | None, options: Any
    ) -> types.InitializeResult:
        await self._client.start_io(sys.executable, "-m", "triton_model_check", "lsp")
        result = await self._client.initialize_async(
            types.InitializeParams(
                capabilities=capabilities or types.ClientCapabilities(),
                initialization_options=options,
            )
        )
        self._client.initialized(types.InitializedParams())
        return result

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SECONDS)

    def _call(self, notify: Any, params: Any) -> None:
        async def call() -> None:
            notify(params)

        self._run(call())

    # --- documents --------------------------------------------------------------------------------

    def open(self, uri: str, text: str, version: int = 1) -> list[types.Diagnostic]:
        """Open a document, and return its findings."""
        item = types.TextDocumentItem(uri, "pbtxt", version, text)
        self._call(self._client.text_document_did_open, types.DidOpenTextDocumentParams(item))
        return self.findings(uri, version)

    def change(self, uri: str, text: str, version: int) -> None:
        """Send the whole text of a document."""
        document = types.VersionedTextDocumentIdentifier(version, uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self._call(
            self._client.text_document_did_change,
            types.DidChangeTextDocumentParams(document, [change]),
        )

    def close(self, uri: str) -> list[types.Diagnostic]:
        """Close a document, and return its findings then."""
        document = types.TextDocumentIdentifier(uri)
        self._call(self._client.text_document_did_close, types.DidCloseTextDocumentParams(document))
        return self.findings(uri, None)

    def changed_on_disk(self, uri: str) -> None:
        """Report that a file was deleted by another program."""
        event = types.FileEvent(uri, types.FileChangeType.Deleted)
        self._call(
            self._client.workspace_did_change_watched_files,
            types.DidChangeWatchedFilesParams([event]),
        )

    def findings(self, uri: str, version: int | None) -> list[types.Diagnostic]:
        """Return the next findings that the server sends for a version of a document."""

        async def wait() -> list[types.Diagnostic]:
            async with self._news:
                await self._news.wait_for(
                    lambda: uri in self._published and self._published[uri].version == version
                )
                return list(self._published.pop(uri).diagnostics)

        return self._run(wait())

    # --- questions --------------------------------------------------------------------------------

    def hover(self, uri: str, line: int, character: int) -> str:
        """Return the text of a hover; "" without one."""
        hover = self._run(
            self._client.text_document_hover_async(
                types.HoverParams(
                    types.TextDocumentIdentifier(uri), types.Position(line, character)
                )
            )
        )
        if hover is None:
            return ""
        assert isinstance(hover.contents, types.MarkupContent)
        return hover.contents.value

    def completions(
        self, uri: str, line: int, character: int, trigger: str | None = None
    ) -> list[types.CompletionItem]:
        """Return what is proposed at a place."""
        context = None
        if trigger is not None:
            kind = types.CompletionTriggerKind.TriggerCharacter
            context = types.CompletionContext(kind, trigger)
        found = self._run(
            self._client.text_document_completion_async(
                types.CompletionParams(
                    types.TextDocumentIdentifier(uri), types.Position(line, character), context
                )
            )
        )
        if found is None:
            return []
        assert isinstance(found, types.CompletionList)
        return list(found.items)

    def actions(
        self, uri: str, place: types.Range, only: Sequence[str] | None = None
    ) -> list[types.CodeAction]:
        """Return the code actions of a range."""
        found = self._run(
            self._client.text_document_code_action_async(
                types.CodeActionParams(
                    types.TextDocumentIdentifier(uri),
                    place,
                    types.CodeActionContext([], only=only),
                )
            )
        )
        actions = [action for action in found or () if isinstance(action, types.CodeAction)]
        assert len(actions) == len(found or ())
        return actions

    def definitions(self, uri: str, line: int, character: int) -> list[types.Location]:
        """Return where the name at a place is declared."""
        found = self._run(
            self._client.text_document_definition_async(
                types.DefinitionParams(
                    types.TextDocumentIdentifier(uri), types.Position(line, character)
                )
            )
        )
        assert isinstance(found, list | tuple)
        return [each for each in found if isinstance(each, types.Location)]

    def end(self) -> int | None:
        """End the connection as an editor that closes; return the exit code of the server."""

        async def leave() -> int | None:
            await self._client.shutdown_async(None)
            self._client.exit(None)
            process = self._client._server
            assert process is not None
            await process.wait()
            code = process.returncode
            stop: Any = self._client.stop  # it has no types
            await stop()
            return code

        code = self._run(leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()
        return code
