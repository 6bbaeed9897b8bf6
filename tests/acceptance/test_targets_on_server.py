"""Starts the real server with every case of ``oracle_targets/``;
the answers must be the recorded ones.
"""

from __future__ import annotations

import pytest
from parts import part
from server_of_targets import Machine, Verdict, why_not
from target_cases import CASES, VERDICTS

BUDGET_MINUTES = 2
#: Follows the reason, except for a model that is not found at all.
_WORDLESS = "error: creating server: Internal - failed to load all models"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """The answers of all servers."""
    if reason := why_not():
        pytest.skip(reason)
    return Machine.prepare(tmp_path_factory.mktemp("targets")).answers(part(sorted(CASES)))


def _words(verdict: Verdict) -> set[str]:
    """What the server says, without the names of models:
    threads decide which one finds no more memory.
    """
    said = (each.partition(": Internal: Unable to init")[::2] for each in verdict["messages"])
    return {more or text for text, more in said if text != _WORDLESS}


@pytest.mark.parametrize("name", part(sorted(CASES)))
def test_server_answers_as_recorded(name: str, answers: dict[str, Verdict]) -> None:
    """A server starts or ends as it did, with the same models and for the same reason."""
    found, recorded = answers[name], VERDICTS[name]
    assert {**found, "messages": ()} == {**recorded, "messages": ()}, found
    assert bool(_words(found)) == bool(_words(recorded))
    assert not _words(recorded) or _words(found) & _words(recorded), found
