"""Keeps every result of a search in a file, so that a search that was stopped continues where it
was.

A search decides the same if its measurements are the same, so a second run asks the same questions
and gets the results of the first one. A result belongs to the model, the data, the image and the
machine that it was measured with, which are in the first line of the file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.drafts import is_taken, lock
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.untrusted.written_files import open_to_append, write_whole

_MOST_BYTES = 64 << 20


class Journal:
    """The results of a search by question; equal questions are counted.

    ``inputs`` are what the results depend on, by a name for people.
    """

    def __init__(self, path: Path, inputs: Mapping[str, str]) -> None:
        self._path = path
        self._asked: Counter[str] = Counter()
        before, *results = _read_lines(path) or [dict(inputs)]
        self._check_inputs(before, inputs)
        self._known: dict[str, Any] = dict(results)
        _refuse_second_search(path)
        self._file = self._begin(before)
        lock(self._file.fileno(), wait=False)

    def __len__(self) -> int:
        return len(self._known)

    def recall(self, question: str, measure: Callable[[], Any]) -> Any:
        """Return the result of a question that was asked as often before,
        or measure it and keep it.
        """
        result = self.recall_once(f"{question} #{self._asked[question]}", measure)
        self._asked[question] += 1
        return result

    def recall_once(self, question: str, measure: Callable[[], Any]) -> Any:
        """Return the only result of a question, however often it is asked."""
        if question not in self._known:
            self._known[question] = measure()
            self._write({"key": question, "value": self._known[question]})
        return self._known[question]

    def close(self) -> None:
        """Close the file, so that another search may write it."""
        self._file.close()

    def _begin(self, inputs: Mapping[str, str]) -> IO[str]:
        """Write the file again without a line that an interrupted run has left unfinished."""
        results = ({"key": question, "value": result} for question, result in self._known.items())
        lines = "".join(f"{json.dumps(line)}\n" for line in ({"inputs": inputs}, *results))
        write_whole(self._path, lines)
        return TextIOWrapper(open_to_append(self._path), encoding="utf-8", newline="\n")

    def _write(self, line: Any) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def _check_inputs(self, before: Mapping[str, Any], inputs: Mapping[str, str]) -> None:
        other = [name for name in inputs if before.get(name) != inputs[name]]
        if other:
            changes = ", ".join(
                f"{name} (was {before.get(name)}, is {inputs[name]})" for name in other
            )
            raise InvalidValueError(
                f"{self._path}: belongs to a search with other inputs: {changes}; "
                "give another folder with -o, or delete the file to begin again"
            )


def _refuse_second_search(path: Path) -> None:
    """Check that no other search writes the journal: each would lose results to the other.

    A search keeps its journal locked, and not the folder, in which its report is written too.

    Raises:
        InvalidValueError: another search is writing there.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # there is none yet, or it cannot be written either
        return
    try:
        if is_taken(descriptor):
            raise InvalidValueError(
                f"{path.parent}: another search is writing its results; wait until it has ended, "
                "or give another folder with -o"
            )
    finally:
        os.close(descriptor)


def _read_lines(path: Path) -> list[Any]:
    try:
        content = read_regular(path, _MOST_BYTES)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidValueError(
            f"{path}: cannot be read ({error}); give another folder with -o"
        ) from None
    *lines, _unfinished = content.decode("utf-8", "replace").split("\n")
    return [_parse(path, number, line) for number, line in enumerate(lines, 1)]


def _parse(path: Path, number: int, text: str) -> Any:
    """Return the inputs in the first line, or the question and the result in another line."""
    try:
        line = parse_bounded_json(text)
        return dict(line["inputs"]) if number == 1 else (str(line["key"]), line["value"])
    except (ValueError, KeyError, TypeError):
        raise InvalidValueError(
            f"{path}: line {number} is not a result of a search; delete the file to begin again"
        ) from None
