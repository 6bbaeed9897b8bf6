"""``dev/failure_texts``: error texts are read from the sources of each release."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from failure_texts import cpp_texts, python_texts
from failure_texts.__main__ import print_difference
from failure_texts.aws_exceptions import aws_exceptions
from failure_texts.collected_messages import CollectedMessage, collected_messages
from failure_texts.collecting import Text, collect
from failure_texts.needles import needles
from failure_texts.public_messages import PublicMessage, public_messages
from failure_texts.reviewed_messages import ReviewedMessage, reviewed_messages
from failure_texts.table import TABLE, entry_of, read_table
from figures.failures import failures
from parts import part

from constructs_triton_core.facts.failures import known_failures
from constructs_triton_tools.operations.diagnosis import Message, recognize

CPP = """
// return Status(Status::Code::INTERNAL, "only a comment, not a text");
if (count != 1) {
  return Status(
      Status::Code::INVALID_ARG,
      "model '" + name + "' has " + std::to_string(count) + " of the tensors");
}
RETURN_ERROR_IF_FALSE(ok, TRITONSERVER_ERROR_INTERNAL, std::string("cannot open ") + path);
LOG_ERROR << "failed to stop " << name << (is_late ? " late" : " in time") << ".";
LOG_INFO << "loading the model now";
throw PythonBackendException("GPU tensors " "are not supported.");
"""


def test_texts_of_cpp_are_put_together() -> None:
    """Parts are joined, values are holes, and comments and information are no errors."""
    assert list(cpp_texts.texts(CPP)) == [
        "model '⟨⟩' has ⟨⟩ of the tensors",
        "cannot open ⟨⟩",
        "failed to stop ⟨⟩.",
        "GPU tensors are not supported.",
    ]


def test_texts_of_python_are_put_together() -> None:
    """Exceptions, assertions and errors of the log count, with holes for values."""
    source = (
        "raise ValueError(f'model {name} is not ' + 'ready')\n"
        "assert size > 0, 'size must be {}'.format(least)\n"
        "logger.log_error(f'[vllm] stopped: {error}')\nprint('hello to you')\n"
    )
    assert sorted(python_texts.texts(source)) == [
        "[vllm] stopped: ⟨⟩",
        "model ⟨⟩ is not ready",
        "size must be ⟨⟩",
    ]


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """A git repository with two releases, of which the later one has another text."""
    folder = tmp_path / "core"
    (folder / "src" / "test").mkdir(parents=True)

    def git(*arguments: str) -> None:
        command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run([*command, *arguments], check=True, capture_output=True)

    git("init", "-q")
    for release, text in (("r24.01", "old words of it"), ("r24.02", "new words of it")):
        error = 'TRITONSERVER_ErrorNew(CODE, "{}");'
        (folder / "src" / "a.cc").write_text(
            error.format("is in both releases") + error.format(text)
        )
        (folder / "src" / "test" / "b.cc").write_text(error.format("only a test has it"))
        git("add", ".")
        git("commit", "-q", "-m", "a")
        git("branch", release)
    return folder


def test_each_text_has_its_first_and_last_release(
    core: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The branches of releases are read; what is new is printed with the entry, or without one."""
    texts = collect({"core": core})
    assert texts == [
        Text("core", "a.cc", "24.01", "24.02", "is in both releases"),
        Text("core", "a.cc", "24.02", "24.02", "new words of it"),
        Text("core", "a.cc", "24.01", "24.01", "old words of it"),
    ]
    print_difference(texts[::2], texts)
    assert capsys.readouterr().out.splitlines() == [
        "NO ENTRY: core, a.cc: new words of it",
        "1 new texts, 2 before",
    ]


def test_table_is_what_the_program_writes() -> None:
    """Each text of the table has the entry that the catalogue and the families give it today."""
    rows = read_table()
    assert len(rows) > 1500
    wrong = {text: entry for text, entry in rows.items() if entry_of(text) != entry}
    assert wrong == {}, f"run `python -m failure_texts` in dev; {TABLE} is older than the catalogue"


def test_each_match_contains_a_word_of_its_entry() -> None:
    """The words decide which patterns are tried, so those of the file are those of the patterns."""
    failures = known_failures()
    wanted = {
        each.id: tuple(words) for each in failures if (words := sorted(needles(each.pattern_text)))
    }
    found = {each.id: each.needles for each in failures if each.needles}
    assert found == wanted, "run `python -m failure_texts` in dev"
    assert len(found) > 0.99 * len(failures)
    assert all(each.may_match(each.example.lower()) for each in failures)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"No module named '(?P<name>\w+)'", {"no module named '"}),
        (r"(?:cannot|could not) open .{1,80}", {" open "}),
        (r"(?i)Out Of\s+MEMORY", {"out of"}),
        (r"[Ff]ile (?:x|)", {"file "}),
        (r"(?:abc)?de", set()),
        (r"(?:refused ){1,3}again", {"refused "}),
        (r"(?=never)a{3}", set()),
    ],
)
def test_words_are_in_every_match(pattern: str, words: set[str]) -> None:
    """Of alternatives each has a word, an optional part has none, and case does not count."""
    assert needles(pattern) == words


def test_public_messages_have_the_entry_that_their_threads_found() -> None:
    """Each message that people posted has the cause of its thread; the few without an entry have
    none.
    """
    rows: list[PublicMessage | ReviewedMessage | CollectedMessage] = [
        *public_messages(),
        *reviewed_messages(),
        *collected_messages(),
    ]
    assert len(rows) > 450
    for row in part(rows):
        found = recognize(Message(row.message, row.thread))
        assert (found.id if found else "") == row.entry, row.thread


def test_reviewed_messages_are_no_repeats() -> None:
    """A reviewed message is from a thread that the authors of the catalogue did not list."""
    listed = {row.thread for row in public_messages()}
    rows = reviewed_messages()
    assert not listed & {row.thread for row in rows}
    assert {row.first_verdict for row in rows} == {"right", "partly", "unknown", "wrong"}


def test_collected_messages_are_no_repeats() -> None:
    """A thread is in one list only, and a message without an entry is unknown."""
    listed = {row.thread for row in public_messages()}
    listed |= {row.thread for row in reviewed_messages()}
    rows = collected_messages()
    assert not listed & {row.thread for row in rows}
    assert len({row.thread for row in rows}) == len(rows)
    assert all((row.verdict == "unknown") == (row.entry == "") for row in rows)
    assert all((row.first_verdict == "unknown") == (row.first_entry == "") for row in rows)


def test_exceptions_of_aws_come_from_the_models() -> None:
    """Each operation's exceptions are read from botocore, with the entry that names a cause."""
    found = {(each.operation, each.code): each.entry for each in aws_exceptions()}
    assert found["DeleteRole", "DeleteConflict"] == "aws-conflict"
    assert found["InvokeEndpoint", "ModelError"] == ""


def test_first_verdicts_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The figures count how many messages were explained before the catalogue knew them."""
    counts = Counter(row.first_verdict for row in public_messages())
    figures = {row.what: row.value for row in failures()}
    assert set(counts) == {"right", "unknown", "wrong"}
    assert figures["public messages, explained at the first try"] == counts["right"]
    assert figures["public messages, with a wrong cause at the first try"] == counts["wrong"]
