"""``make account-check``, or ``PYTHONPATH=dev python -m account_check``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .account import Account, caller
from .estimate import estimate
from .questions import QUESTIONS, Question
from .stacks import synthesize


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask the questions; returns the exit code."""
    given = _parser().parse_args(arguments)
    asked = [each for each in QUESTIONS if given.question in (None, each.number)]
    print(f"{caller()}. Run `cdk bootstrap` there once before.")
    print(estimate(asked))
    if not given.yes and input("Deploy these stacks? [y/N] ").strip().lower() != "y":
        print("Nothing was deployed.")
        return 1
    print("| question | answer |\n|---|---|")
    with tempfile.TemporaryDirectory(prefix="account-check-") as directory:
        synthesize(Path(directory))
        account = Account(Path(directory), wait_minutes=given.wait_minutes)
        failed = [each for each in asked if not _ask(each, account)]
    return 1 if failed else 0


def _ask(question: Question, account: Account) -> bool:
    """Print the answer as a row of the table; destroy the stack whatever happens."""
    answer = None
    try:
        answer = question.ask(account)
    except Exception as error:
        print(f"question {question.number} has no answer: {error!r}", file=sys.stderr)
    finally:
        account.destroy(question.stack)
    print(f"| {question.text} | {answer or 'not answered'} |", flush=True)
    return answer is not None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="account_check", description=__doc__)
    numbers = [each.number for each in QUESTIONS]
    parser.add_argument(
        "--question", type=int, choices=numbers, help="ask only this one (default: all)"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before anything is deployed")
    parser.add_argument(
        "--wait-minutes",
        type=float,
        default=15,
        help="how long to wait for metrics that SageMaker publishes late (default: 15)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
