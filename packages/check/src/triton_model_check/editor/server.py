"""The language server: what an editor asks, and when a check runs.

The protocol is that of pygls. A check runs in a thread, one at a time, and on a copy of the texts
that the editor has then. What it finds is sent only if the texts are still the same.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path, uri_scheme

from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.findings import Finding
from constructs_triton_core.visible_text import visible_lines
from triton_model_check import __version__
from triton_model_check.editor.checking import Checker, text_findings
from triton_model_check.editor.diagnostics import PROGRAM, diagnostic
from triton_model_check.editor.lines import Lines
from triton_model_check.editor.model_files import ModelFile, is_config, model_file

SECONDS_AFTER_CHANGE = 0.25
"""How long nothing must be typed before a check begins."""

T = TypeVar("T")


class Document(NamedTuple):
    """A document of the editor: its text, and the model that it belongs to.

    ``path`` is ``None`` if it was never saved, and ``file`` if it belongs to no model.
    """

    uri: str
    version: int | None
    text: str
    path: Path | None
    file: ModelFile | None

    @property
    def is_config(self) -> bool:
        """Whether it is a model configuration."""
        return self.path is not None and is_config(self.path)


class Result(NamedTuple):
    """The findings of a document, and the text in which they were found."""

    text: str
    findings: tuple[Finding, ...]


class EditorServer(LanguageServer):
    """A server for one editor.

    Args:
        arguments: The options of the command line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        # The editor sends whole texts, which are small. Of changes, pygls would count lines as
        # Python's splitlines() does, which knows more ends of lines than editors.
        super().__init__(
            PROGRAM, __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full
        )
        self._checker = Checker(arguments)
        self._results: dict[str, Result] = {}
        self._changes: Counter[str] = Counter()
        self._to_check: set[str] = set()
        self._last_problem: dict[str, str] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        # The checks note some things once for the process.
        self._one_check = asyncio.Lock()

    # --- documents --------------------------------------------------------------------------------

    def document(self, uri: str) -> Document:
        """Return a document of the editor."""
        opened = self.workspace.get_text_document(uri)
        path = _path_of(uri)
        file = (
            None if path is None or uri_scheme(uri) != "file" else model_file(path, self._is_file)
        )
        return Document(uri, opened.version, opened.source, path, file)

    def documents(self) -> list[Document]:
        """Return the documents that are open."""
        return [self.document(uri) for uri in self._addresses()]

    def _addresses(self) -> list[str]:
        """Return the addresses of the open documents, as the editor writes them."""
        # The keys of the dictionary are decoded: another address if a path has "+" or a blank.
        return [opened.uri for opened in self.workspace.text_documents.values()]

    def _is_file(self, path: Path) -> bool:
        """Whether a file exists, on disk or in the editor."""
        opened = map(_path_of, self._addresses())
        return path in opened or path.is_file()

    def texts_of(self, repository: Path) -> dict[ModelFile, str]:
        """Return what the editor has of files of a repository."""
        return {
            document.file: document.text
            for document in self.documents()
            if document.file is not None and document.file.repository == repository
        }

    def lines_of(self, text: str) -> Lines:
        """Return the lines of a text, by the columns of this editor."""
        encoding = self.workspace.position_encoding
        return Lines(text, encoding or types.PositionEncodingKind.Utf16)

    # --- checks -----------------------------------------------------------------------------------

    def use_options(self, options: Any) -> None:
        """Check with the options of the editor from now on; report those that are wrong."""
        try:
            self._checker = self._checker.with_options(options)
        except ConstructsTritonError as error:
            self.show("initializationOptions", str(error))

    def load_rules(self) -> None:
        """Load the rules before a document is opened, so that its findings come sooner."""
        self._start(in_thread(partial(import_module, "triton_model_check.checks.check_run")))

    def schedule(self, uri: str, seconds: float = 0) -> None:
        """Check a document and those of its repository after a time, unless one changes again."""
        document = self.document(uri)
        if document.file is not None:
            self._schedule_group(str(document.file.repository), seconds)
        elif document.is_config:
            self._publish(document, tuple(text_findings(document.text, uri)))

    def schedule_all(self) -> None:
        """Check all open documents again, because of a change on disk."""
        for document in self.documents():
            self.schedule(document.uri, SECONDS_AFTER_CHANGE)

    def forget(self, uri: str) -> None:
        """Clear the findings of a document that was closed, and check its neighbours again."""
        self._results.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))
        path = _path_of(uri)
        closed = None if path is None else model_file(path, self._is_file)
        if closed is not None and self.texts_of(closed.repository):
            self._schedule_group(str(closed.repository), SECONDS_AFTER_CHANGE)

    def _schedule_group(self, repository: str, seconds: float) -> None:
        self._to_check.add(repository)
        self._changes[repository] += 1
        self._start(self._check_later(repository, self._changes[repository], seconds))

    def _start(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Start a task, and keep it: the event loop does not."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check_later(self, repository: str, change: int, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self._changes[repository] == change:
            await self._check(repository)

    async def _check(self, repository: str) -> None:
        """Check the documents of a repository, unless that was done since they changed."""
        async with self._one_check:
            if repository not in self._to_check:
                return
            self._to_check.discard(repository)
            texts = self.texts_of(Path(repository))
            if not texts:
                return
            try:
                found = await in_thread(partial(self._checker.check, Path(repository), texts))
            except ConstructsTritonError as error:
                self.show(repository, str(error))
                return
            except Exception as error:  # a bug of a check, which must not end the server
                self._log_bug(repository, error)
                return
        self._last_problem.pop(repository, None)
        for document in self.documents():
            # One that has changed since is checked again.
            if document.file in texts and texts[document.file] == document.text:
                self._publish(document, tuple(found[document.file.path]))

    async def findings_of(self, document: Document) -> tuple[Finding, ...]:
        """Return the findings of a document as it is, which may need a check."""
        result = self._results.get(document.uri)
        if (result is None or result.text != document.text) and document.file is not None:
            await self._check(str(document.file.repository))
        return self.known_findings(document)

    def known_findings(self, document: Document) -> tuple[Finding, ...]:
        """Return the findings of a document; none if it has changed since the last check."""
        result = self._results.get(document.uri)
        return result.findings if result is not None and result.text == document.text else ()

    def _publish(self, document: Document, findings: tuple[Finding, ...]) -> None:
        self._results[document.uri] = Result(document.text, findings)
        lines = self.lines_of(document.text)
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                document.uri,
                [diagnostic(finding, lines) for finding in findings],
                document.version,
            )
        )

    # --- messages ---------------------------------------------------------------------------------

    def show(self, cause: str, message: str) -> None:
        """Show a message to the user, unless it is the last one of its cause."""
        if self._last_problem.get(cause) != message:
            self._last_problem[cause] = message
            shown = visible_lines(message)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, shown))

    def _log_bug(self, repository: str, error: Exception) -> None:
        """Log an error of a check, once until another one occurs."""
        trace = "".join(traceback.format_exception(error))
        if self._last_problem.get(repository) != trace:
            self._last_problem[repository] = trace
            message = (
                f"{repository}: the check ended with an error of {PROGRAM} itself, so the findings "
                f"are those of before; report it:\n{trace}"
            )
            shown = visible_lines(message)
            self.window_log_message(types.LogMessageParams(types.MessageType.Error, shown))


async def in_thread(function: Callable[[], T]) -> T:
    """Return what a function returns, which runs in a thread of its own.

    The thread does not keep the process alive: an editor that closes need not wait for a check.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_value: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            set_value(value)

    def work() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (future.set_result, function())
        except Exception as error:
            outcome = (future.set_exception, error)
        # The loop is closed if the editor has ended the connection.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, name="check", daemon=True).start()
    return await future


def _path_of(uri: str) -> Path | None:
    """Return the path of a document on disk, or of one that has only a name: ``untitled:NAME``."""
    scheme = uri_scheme(uri)
    if scheme == "untitled":
        return Path(uri.partition(":")[2])
    path = to_fs_path(uri)
    return None if path is None else Path(path)
