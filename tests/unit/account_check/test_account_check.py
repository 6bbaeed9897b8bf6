"""The script that asks an AWS account, without an account."""

from __future__ import annotations

from pathlib import Path

import account_check.__main__ as command
import pytest
from account_check.account import Account, Outcome
from account_check.estimate import estimate
from account_check.questions import QUESTIONS, Question
from account_check.stacks import STACKS

PROJECT = Path(__file__).resolve().parents[3]


def asking(answer: str | Exception) -> Question:
    """A question with that answer."""

    def ask(account: Account) -> str:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Question(1, "Is it so?", "Stack", instances=1, minutes=30, ask=ask)


@pytest.fixture
def destroyed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stacks that were destroyed; nothing is synthesized or deployed."""
    found: list[str] = []
    monkeypatch.setattr(command, "caller", lambda: "Account 123456789012, Region eu-west-1")
    monkeypatch.setattr(command, "synthesize", lambda _: None)
    monkeypatch.setattr(Account, "destroy", lambda _, stack: found.append(stack))
    return found


def test_documentation_has_every_question() -> None:
    """The table of the page has a row with question, command and room for the answer."""
    page = (PROJECT / "dev" / "project" / "not_settled.md").read_text()
    for each in QUESTIONS:
        assert f"| {each.text} | `make account-check QUESTION={each.number}` |" in page


def test_every_question_has_a_stack() -> None:
    """Each stack belongs to one question."""
    assert [each.stack for each in QUESTIONS] == list(STACKS)


def test_estimate_lists_stacks_and_total() -> None:
    """The estimate is an upper limit, and stays below what the documentation says."""
    text = estimate(QUESTIONS)
    assert all(each.stack in text for each in QUESTIONS)
    assert 0 < float(text.partition("total $")[2].partition(". ")[0]) < 17


def test_nothing_is_deployed_without_confirmation(
    destroyed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The estimate is printed before the question, and only "y" continues."""
    monkeypatch.setattr(command, "QUESTIONS", (asking("yes"),))
    monkeypatch.setattr("builtins.input", lambda _: "")
    assert command.main([]) == 1
    assert "total $" in capsys.readouterr().out
    assert destroyed == []
    monkeypatch.setattr("builtins.input", lambda _: "Y")
    assert command.main([]) == 0
    assert destroyed == ["Stack"]


def test_answers_are_rows_of_the_table(
    destroyed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each stack is destroyed; after one that failed the others are asked,
    and the exit code is 1.
    """
    answers: list[tuple[str | Exception, str]] = [
        ("yes", "yes"),
        (RuntimeError("no quota"), "not answered"),
    ]
    for given in (answers[:1], answers[::-1]):
        destroyed.clear()
        monkeypatch.setattr(command, "QUESTIONS", tuple(asking(answer) for answer, _ in given))
        assert command.main(["--yes"]) == (len(given) > 1)
        printed = capsys.readouterr()
        assert "\n".join(f"| Is it so? | {shown} |" for _, shown in given) in printed.out
        assert ("no quota" in printed.err) == (len(given) > 1)
        assert destroyed == ["Stack"] * len(given)


@pytest.mark.parametrize("question", QUESTIONS, ids=[each.stack for each in QUESTIONS])
def test_stack_that_cannot_be_created_is_an_answer(
    question: Question, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The answer is the reason, and the stack is asked nothing else."""
    failed = Outcome("ROLLBACK_COMPLETE", "Endpoint: no quota")
    monkeypatch.setattr(Account, "deploy", lambda *_: failed)
    assert question.ask(Account(tmp_path, wait_minutes=0)) == f"create {failed}"


def test_outcome_names_the_reason() -> None:
    """A success has no reason."""
    assert str(Outcome("CREATE_COMPLETE", "")) == "CREATE_COMPLETE"
    assert str(Outcome("ROLLBACK_COMPLETE", "Endpoint: no")) == "ROLLBACK_COMPLETE: Endpoint: no"
