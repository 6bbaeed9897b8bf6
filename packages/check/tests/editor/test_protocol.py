"""``triton-model-check lsp`` as an editor speaks to it: one process, and pygls' client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from check_examples import write
from check_examples.repositories import CLASS, HEAD, ensemble, one, pipe, step
from lsp_client import EditorClient, address
from lsprotocol import types

BROKEN = HEAD.replace("TYPE_FP32", '"TYPE_FP32"', 1)
EVERYTHING = types.Range(types.Position(0, 0), types.Position(1000, 0))


@pytest.fixture(scope="module")
def editor() -> Iterator[EditorClient]:
    """An editor that has started the server."""
    client = EditorClient()
    yield client
    assert client.end() == 0
    assert client.messages == []


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of the only model of a repository, which has no error."""
    return write(one(HEAD), tmp_path / "models") / "m" / "config.pbtxt"


def _applied(text: str, action: types.CodeAction, uri: str) -> str:
    """Return a text of ASCII characters after the edits of an action."""
    assert action.edit is not None
    assert action.edit.changes is not None
    assert list(action.edit.changes) == [uri]
    lines = text.splitlines(keepends=True)
    for edit in reversed(action.edit.changes[uri]):
        start, end = edit.range.start, edit.range.end
        assert start.line == end.line
        line = lines[start.line]
        lines[start.line] = line[: start.character] + edit.new_text + line[end.character :]
    return "".join(lines)


def test_server_says_what_it_can_do(editor: EditorClient) -> None:
    """Whole texts are sent, columns are those of UTF-16, and there are four kinds of questions."""
    can = editor.initialized.capabilities
    assert isinstance(can.text_document_sync, types.TextDocumentSyncOptions)
    assert can.text_document_sync.change == types.TextDocumentSyncKind.Full
    assert can.position_encoding == types.PositionEncodingKind.Utf16
    assert can.hover_provider
    assert can.completion_provider
    assert can.definition_provider
    assert can.code_action_provider


def test_unsaved_text_is_checked_until_it_is_closed(editor: EditorClient, config: Path) -> None:
    """A mistake is reported while it is typed, disappears when it is corrected, and on closing."""
    uri = address(config)
    assert editor.open(uri, HEAD) == []

    editor.change(uri, BROKEN, 2)
    (found,) = editor.findings(uri, 2)
    assert (found.code, found.source) == ("text-enum", "triton-model-check")
    assert found.severity == types.DiagnosticSeverity.Error
    assert found.message == 'an enum value is in quotes, got "TYPE_FP32"\nhint: remove the quotes'
    assert found.range == types.Range(types.Position(2, 31), types.Position(2, 42))

    editor.change(uri, HEAD, 3)
    assert editor.findings(uri, 3) == []
    editor.change(uri, BROKEN, 4)
    assert len(editor.findings(uri, 4)) == 1
    assert editor.close(uri) == []
    assert config.read_text(encoding="utf-8") == HEAD


def test_columns_count_utf_16(editor: EditorClient, config: Path) -> None:
    """An emoji before a place has two columns, a letter with an umlaut has one."""
    uri = address(config)
    text = 'backend: "python" # Größe 🎉\nparameters { key: "Ü🎉" value: 3 }\n'
    (found,) = editor.open(uri, text)
    assert found.code == "text-syntax"
    assert found.range.start == types.Position(1, 31)
    editor.close(uri)


def test_fix_is_an_edit_of_the_text_in_the_editor(editor: EditorClient, config: Path) -> None:
    """The action removes the quotes in a text with Windows line ends, and touches nothing else."""
    uri = address(config)
    text = BROKEN.replace("\n", "\r\n")
    (found,) = editor.open(uri, text)
    (action,) = editor.actions(uri, found.range)
    assert (action.title, action.kind) == ("Fix text-enum: remove the quotes", "quickfix")
    assert _applied(text, action, uri) == HEAD.replace("\n", "\r\n")
    elsewhere = types.Range(types.Position(0, 0), types.Position(0, 0))
    assert editor.actions(uri, elsewhere) == []
    editor.close(uri)


def test_all_fixes_are_one_action(editor: EditorClient, config: Path) -> None:
    """An editor that corrects on saving asks for ``source.fixAll``."""
    uri = address(config)
    text = HEAD.replace("max_batch_size: 8", "max_batch_size: +8")
    editor.open(uri, text)
    (action,) = editor.actions(uri, EVERYTHING, ["source.fixAll"])
    assert action.kind == "source.fixAll.triton-model-check"
    assert _applied(text, action, uri) == HEAD
    editor.close(uri)


def test_fixes_belong_to_the_newest_text(editor: EditorClient, config: Path) -> None:
    """An action that is asked for before the check of a change waits for it."""
    uri = address(config)
    editor.open(uri, HEAD)
    editor.change(uri, f"# a comment\n{BROKEN}", 2)
    (action,) = editor.actions(uri, EVERYTHING)
    assert _applied(f"# a comment\n{BROKEN}", action, uri) == f"# a comment\n{HEAD}"
    editor.close(uri)


def test_hover_explains_findings_and_fields(editor: EditorClient, config: Path) -> None:
    """On a finding it is the text of ``explain``, on a field the comment of Triton's schema."""
    uri = address(config)
    (found,) = editor.open(uri, BROKEN)
    explained = editor.hover(uri, found.range.start.line, found.range.start.character)
    assert "text-enum: Enum values are spelled as in the schema" in explained
    described = editor.hover(uri, 1, 3)
    assert described.startswith("`max_batch_size`: int32\n\nMaximum batch size allowed")
    assert editor.hover(uri, 0, 12) == ""
    editor.close(uri)


def test_completion_in_a_text_that_does_not_parse(editor: EditorClient, config: Path) -> None:
    """The fields of the message around the cursor, with comments, without those it has."""
    uri = address(config)
    lines = ('backend: "python"', "input [ {", '  name: "x"', "  da", "  dims: [ 1 ]")
    editor.open(uri, "\n".join(lines))
    items = {item.label: item for item in editor.completions(uri, 3, 4)}
    assert {"data_type", "reshape", "optional"} <= items.keys()
    assert not {"name", "backend"} & items.keys()
    data_type = items["data_type"]
    assert data_type.documentation == "The data-type of the input."
    assert isinstance(data_type.text_edit, types.TextEdit)
    assert data_type.text_edit.new_text == "data_type:"
    assert data_type.text_edit.range == types.Range(types.Position(3, 2), types.Position(3, 4))
    editor.close(uri)


def test_completion_of_values_behind_a_blank(editor: EditorClient, config: Path) -> None:
    """A blank behind a colon shows the values of an enum; one before a field shows nothing."""
    uri = address(config)
    editor.open(uri, "input { data_type: \n optional: ")
    labels = [item.label for item in editor.completions(uri, 0, 19, " ")]
    assert labels[:2] == ["TYPE_INVALID", "TYPE_BOOL"]
    assert [item.label for item in editor.completions(uri, 1, 11)] == ["true", "false"]
    assert editor.completions(uri, 0, 8, " ") == []
    editor.close(uri)


def test_definitions_of_an_ensemble(editor: EditorClient, tmp_path: Path) -> None:
    """A model leads to its configuration, a tensor to where it is produced."""
    text = pipe(step("a", "X", "between"), step("b", "between", "Y"))
    root = write(ensemble(text, b=HEAD), tmp_path / "models")
    uri = address(root / "pipe" / "config.pbtxt")
    assert editor.open(uri, text) == []

    rows = text.split("\n")
    first, second = (next(n for n, row in enumerate(rows) if f'"{name}"' in row) for name in "ab")
    (model,) = editor.definitions(uri, second, rows[second].index('"b"') + 1)
    assert model.uri == address(root / "b" / "config.pbtxt")
    (tensor,) = editor.definitions(uri, second, rows[second].index('"between"') + 3)
    assert (tensor.uri, tensor.range.start.line) == (uri, first)
    (declared,) = editor.definitions(uri, second, rows[second].index('key: "X"') + 6)
    assert (declared.uri, declared.range.start.line) == (model.uri, 2)
    editor.close(uri)


def test_open_files_of_a_model_are_checked_together(editor: EditorClient, config: Path) -> None:
    """A configuration that another backend reads makes the findings of ``model.py`` disappear."""
    source, uri = address(config.parent / "1" / "model.py"), address(config)
    lacking = "class TritonPythonModel:\n    pass\n"
    (found,) = editor.open(source, lacking)
    assert found.code == "python-execute"
    assert editor.open(uri, HEAD) == []
    assert len(editor.findings(source, 1)) == 1

    editor.change(source, CLASS, 2)
    assert editor.findings(source, 2) == []
    editor.close(source)
    editor.close(uri)


def test_model_that_is_not_saved(editor: EditorClient, tmp_path: Path) -> None:
    """Neither the folder of the model nor its version folder need exist."""
    uri = address(tmp_path / "new" / "config.pbtxt")
    codes = {found.code for found in editor.open(uri, BROKEN)}
    assert "text-enum" in codes
    assert list(tmp_path.iterdir()) == []
    editor.close(uri)


@pytest.mark.parametrize("folder", ["a+b", "a b", "Größe 🎉", "100%", "a%20b", "#1?x=1", "a;b"])
def test_any_name_of_a_folder(editor: EditorClient, tmp_path: Path, folder: str) -> None:
    """An address is answered as the editor writes it, whatever it has to escape."""
    root = write(one(HEAD), tmp_path / folder / "models")
    uri = address(root / "m" / "config.pbtxt")
    (found,) = editor.open(uri, BROKEN)
    (action,) = editor.actions(uri, found.range)
    assert _applied(BROKEN, action, uri) == HEAD
    editor.close(uri)


@pytest.mark.parametrize("uri", ["untitled:config.pbtxt", "file:///config.pbtxt"])
def test_file_outside_of_any_repository(editor: EditorClient, uri: str) -> None:
    """A text without a repository is parsed, and the fields are known."""
    (found,) = editor.open(uri, "max_batchsize: 8\n")
    assert found.code == "text-unknown-field"
    assert "Maximum batch size" in str(
        [item.documentation for item in editor.completions(uri, 0, 3)]
    )
    assert editor.actions(uri, EVERYTHING) == []
    editor.close(uri)


def test_deleted_file_is_checked_as_it_is_in_the_editor(editor: EditorClient, config: Path) -> None:
    """A deletion on disk leads to another check, and a renamed model is another one."""
    uri = address(config)
    editor.open(uri, BROKEN)
    (config.parent / "1" / "model.py").unlink()
    editor.changed_on_disk(address(config.parent / "1" / "model.py"))
    assert "text-enum" in {found.code for found in editor.findings(uri, 1)}

    moved = config.parents[1] / "renamed"
    config.parent.rename(moved)
    assert editor.close(uri) == []
    renamed = address(moved / "config.pbtxt")
    assert "text-enum" in {found.code for found in editor.open(renamed, BROKEN)}
    editor.close(renamed)


@pytest.mark.parametrize(
    ("text", "code"),
    [("# " + "x" * (2 << 20), "text-size"), ("input {" * 20_000, "text-unknown-field")],
    ids=["large", "deep"],
)
def test_hostile_text_does_not_end_the_server(
    editor: EditorClient, config: Path, text: str, code: str
) -> None:
    """A text that is too large or nested too deeply is one finding, and questions are answered."""
    uri = address(config)
    assert code in {found.code for found in editor.open(uri, text)}
    editor.hover(uri, 0, 3)
    editor.completions(uri, 0, 8)
    editor.definitions(uri, 0, 3)
    editor.close(uri)
    assert editor.open(uri, HEAD) == []
    editor.close(uri)
