"""What the server does when a check fails, in the process of the test."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from check_examples import write
from check_examples.repositories import HEAD, one
from lsp_client import address
from lsprotocol import types
from pygls.workspace import Workspace

from triton_model_check.cli import main
from triton_model_check.editor.checking import Checker
from triton_model_check.editor.command import add_arguments
from triton_model_check.editor.features import new_server
from triton_model_check.editor.server import EditorServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> EditorServer:
    """A server without an editor."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    created = new_server(parser.parse_args([]))
    monkeypatch.setattr(created.protocol, "_workspace", Workspace(None))
    return created


def _sent(server: EditorServer, monkeypatch: pytest.MonkeyPatch, method: str) -> list[Any]:
    """Return the list of what the server sends by a method."""
    sent: list[Any] = []
    monkeypatch.setattr(server, method, sent.append)
    return sent


def _type(server: EditorServer, path: Path, *texts: str) -> None:
    """Open a file, replace its text, and wait for the check of each."""

    async def run() -> None:
        for version, text in enumerate(texts):
            item = types.TextDocumentItem(address(path), "pbtxt", version, text)
            server.workspace.put_text_document(item)
            server.schedule(address(path))
            await asyncio.gather(*server._tasks)

    asyncio.run(run())


def _crash(*_: object) -> None:
    raise RuntimeError("a bug")


def test_crash_of_a_check_is_one_message(
    server: EditorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second crash of the same kind is not logged again, and the next check works."""
    config = write(one(HEAD), tmp_path / "models") / "m" / "config.pbtxt"
    logged = _sent(server, monkeypatch, "window_log_message")
    published = _sent(server, monkeypatch, "text_document_publish_diagnostics")
    with monkeypatch.context() as broken:
        broken.setattr(Checker, "check", _crash)
        _type(server, config, HEAD, HEAD + "\n")
    (message,) = logged
    assert "the check ended with an error of triton-model-check itself" in message.message
    assert "RuntimeError: a bug" in message.message
    assert published == []

    _type(server, config, "max_batchsize: 8")
    assert [found.code for found in published[-1].diagnostics] == ["text-unknown-field"]


def test_wrong_settings_are_shown_once(
    server: EditorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that was shown for one text is not shown for the next one."""
    config = write(one(HEAD), tmp_path / "models") / "m" / "config.pbtxt"
    (tmp_path / "triton-model-check.toml").write_text("targets = 1\n", encoding="utf-8")
    shown = _sent(server, monkeypatch, "window_show_message")
    _type(server, config, HEAD, HEAD + "\n")
    (message,) = shown
    assert "triton-model-check.toml" in message.message


def test_result_of_an_older_text_is_not_sent(
    server: EditorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was typed while a check ran is checked again, and only that is sent."""
    config = write(one(HEAD), tmp_path / "models") / "m" / "config.pbtxt"
    published = _sent(server, monkeypatch, "text_document_publish_diagnostics")
    newer = types.TextDocumentItem(address(config), "pbtxt", 9, HEAD)
    check = Checker.check

    def type_meanwhile(checker: Checker, *arguments: Any) -> Any:
        server.workspace.put_text_document(newer)
        return check(checker, *arguments)

    monkeypatch.setattr(Checker, "check", type_meanwhile)
    _type(server, config, "max_batchsize: 8")
    assert published == []


def test_options_of_the_editor_are_used(
    server: EditorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong option is shown, and the others stay as they were; a right one counts at once."""
    config = write(one(HEAD), tmp_path / "models") / "m" / "config.pbtxt"
    published = _sent(server, monkeypatch, "text_document_publish_diagnostics")
    shown = _sent(server, monkeypatch, "window_show_message")
    server.use_options({"plaze": "server"})
    (message,) = shown
    assert "there is no such option, got '--plaze=server'" in message.message

    text = HEAD + "instance_group [ { count: -1 } ]\n"
    _type(server, config, text)
    assert published[-1].diagnostics
    server.use_options({"select": "layout"})
    _type(server, config, text)
    assert published[-1].diagnostics == []


def test_missing_pygls_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command fails with one sentence that says what to install."""
    monkeypatch.setattr("triton_model_check.editor.command.find_spec", lambda _: None)
    assert main(["lsp"]) == 2
    error = "pygls is not installed; run `pip install 'triton-model-check[lsp]'`\n"
    assert capsys.readouterr().err.endswith(error)


def test_other_commands_do_not_load_the_server() -> None:
    """A check in a commit hook starts as fast as without an editor; so does the help of ``lsp``."""
    code = (
        "import sys\n"
        "from triton_model_check.cli import main\n"
        "for words in (['explain', 'text-enum'], ['lsp', '--help']):\n"
        "    try:\n"
        "        main(words)\n"
        "    except SystemExit:\n"
        "        pass\n"
        "assert not {'pygls', 'lsprotocol', 'asyncio'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
