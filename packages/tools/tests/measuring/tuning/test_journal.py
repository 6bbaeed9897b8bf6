"""The journal of a search."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.drafts import lock
from constructs_triton_tools.measuring.tuning.journal import Journal

INPUTS = {"model": "m 1", "machine": "2 CPUs"}


def never() -> object:
    raise AssertionError("the result is in the journal")


def test_results_are_used_again_in_their_order(tmp_path: Path) -> None:
    """A second run gets the results of the first for equal questions, in their order,
    and then measures.
    """
    path = tmp_path / "journal.jsonl"
    first = Journal(path, INPUTS)
    assert [first.recall("a", lambda: 1), first.recall("a", lambda: 2)] == [1, 2]
    first.close()
    second = Journal(path, INPUTS)
    assert len(second) == 2
    assert [
        second.recall("a", never),
        second.recall("a", never),
        second.recall("a", lambda: 3),
    ] == [1, 2, 3]
    second.close()


def test_question_that_is_asked_once_has_one_result(tmp_path: Path) -> None:
    """A result of ``recall_once`` is measured once, also over several runs."""
    for number in range(2):
        journal = Journal(tmp_path / "journal.jsonl", INPUTS)
        assert [journal.recall_once("check", lambda: number) for _ in range(2)] == [0, 0]  # noqa: B023
        journal.close()


def test_failed_measurement_is_not_kept(tmp_path: Path) -> None:
    """A measurement that raises leaves nothing in the journal, so that it is repeated."""
    journal = Journal(tmp_path / "journal.jsonl", INPUTS)
    with pytest.raises(AssertionError):
        journal.recall("a", never)
    assert journal.recall("a", lambda: 1) == 1
    journal.close()


@pytest.mark.parametrize("tail", ['{"key": "b #0", "val', '{"key": "b #0"}', "\0\0\0"])
def test_unfinished_last_line_is_left_out(tmp_path: Path, tail: str) -> None:
    """A last line that was not written to its end is measured again,
    and the results before it are kept.
    """
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, INPUTS)
    journal.recall("a", lambda: 1)
    journal.close()
    with path.open("a") as file:
        file.write(tail)
    again = Journal(path, INPUTS)
    assert (again.recall("a", never), again.recall("b", lambda: 2)) == (1, 2)
    again.close()
    assert [json.loads(line).get("key") for line in path.read_text().splitlines()] == [
        None,
        "a #0",
        "b #0",
    ]


@pytest.mark.parametrize("damage", ["broken", "[" * 100_000], ids=["text", "nested"])
def test_damage_in_the_middle_is_an_error(tmp_path: Path, damage: str) -> None:
    """A line before the last one that is not a result is an error with the number of the line."""
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps({"inputs": INPUTS}) + f'\n{damage}\n{{"key": "a #0", "value": 1}}\n')
    with pytest.raises(
        InvalidValueError, match="line 2 is not a result of a search; delete the file"
    ):
        Journal(path, INPUTS)


def test_other_inputs_are_named(tmp_path: Path) -> None:
    """Results of another machine are refused; the error names what differs,
    and the old and new value.
    """
    path = tmp_path / "journal.jsonl"
    Journal(path, INPUTS).close()
    with pytest.raises(
        InvalidValueError, match=r"inputs: machine \(was 2 CPUs, is 4 CPUs\); give another"
    ):
        Journal(path, {**INPUTS, "machine": "4 CPUs"})


def test_other_file_is_not_overwritten(tmp_path: Path) -> None:
    """A file that is not a journal is an error, and keeps its content."""
    path = tmp_path / "journal.jsonl"
    path.write_text('{"steps": []}\n')
    with pytest.raises(InvalidValueError, match="line 1 is not a result of a search"):
        Journal(path, INPUTS)
    assert path.read_text() == '{"steps": []}\n'


def test_two_searches_do_not_share_a_folder(tmp_path: Path) -> None:
    """The second one would replace the journal of the first, which goes on writing the old one."""
    path = tmp_path / "journal.jsonl"
    first = Journal(path, INPUTS)
    with pytest.raises(InvalidValueError, match=r"another search is writing .* with -o"):
        Journal(path, INPUTS)
    first.close()
    Journal(path, INPUTS).close()


def test_a_search_writes_its_report_beside_its_journal(tmp_path: Path) -> None:
    """The journal is locked, and not its folder, for which the writer of a report would wait."""
    with closing(Journal(tmp_path / "journal.jsonl", INPUTS)):
        folder = os.open(tmp_path, os.O_RDONLY)
        try:
            assert lock(folder, wait=False)
        finally:
            os.close(folder)
