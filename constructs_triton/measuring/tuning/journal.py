"""Keeps every result of a search in a file, so that a search that was stopped continues where it was.

A search decides the same if its measurements are the same, so a second run asks the same questions and gets
the results of the first one. A result belongs to the model, the data, the image and the machine that it was
measured with, which are in the first line of the file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from constructs_triton.errors import InvalidValueError
from constructs_triton.untrusted.regular_files import read_regular

__all__ = ["Journal"]

_MOST_BYTES = 64 << 20


class Journal:
    """The results of a search by question; equal questions are counted.

    Args:
        path: File with one JSON value per line.
        inputs: What the results depend on, by a name for people.

    Raises:
        InvalidValueError: the file belongs to other inputs, or is not a journal.
    """

    def __init__(self, path: Path, inputs: Mapping[str, str]) -> None:
        self._path = path
        self._asked: Counter[str] = Counter()
        self._known: dict[str, Any] = {}
        lines = _read_lines(path)
        if lines:
            self._check_inputs(lines[0], inputs)
            self._known = {line["key"]: line["value"] for line in lines[1:]}
        self._file = self._begin([lines[0] if lines else {"inputs": dict(inputs)}, *lines[1:]])

    def __len__(self) -> int:
        return len(self._known)

    def recall(self, question: str, measure: Callable[[], Any]) -> Any:
        """Return the result of a question that was asked as often before, or measure it and keep it."""
        key = f"{question} #{self._asked[question]}"
        if key not in self._known:
            value = measure()
            self._known[key] = value
            self._write({"key": key, "value": value})
        self._asked[question] += 1
        return self._known[key]

    def recall_once(self, question: str, measure: Callable[[], Any]) -> Any:
        """Return the only result of a question, however often it is asked."""
        if question not in self._known:
            self._known[question] = measure()
            self._write({"key": question, "value": self._known[question]})
        return self._known[question]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _begin(self, lines: list[Any]) -> IO[str]:
        """Write the file again without a line that an interrupted run has left unfinished."""
        temporary = self._path.with_suffix(".new")
        temporary.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        temporary.replace(self._path)
        return self._path.open("a", encoding="utf-8")

    def _write(self, line: Any) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def _check_inputs(self, first: Any, inputs: Mapping[str, str]) -> None:
        before = first.get("inputs") if isinstance(first, dict) else None
        if not isinstance(before, dict):
            raise _not_a_journal(self._path, 1)
        other = [name for name in inputs if before.get(name) != inputs[name]]
        if other:
            changes = ", ".join(f"{name} (was {before.get(name)}, is {inputs[name]})" for name in other)
            raise InvalidValueError(
                f"{self._path}: belongs to a search with other inputs: {changes}; "
                "give another folder with -o, or delete the file to begin again"
            )


def _read_lines(path: Path) -> list[Any]:
    try:
        content = read_regular(path, _MOST_BYTES)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidValueError(f"{path}: cannot be read ({error}); give another folder with -o") from None
    texts = content.decode("utf-8", "replace").splitlines()
    return [value for number, text in enumerate(texts, 1) for value in _parse(path, number, text, len(texts))]


def _parse(path: Path, number: int, text: str, count: int) -> list[Any]:
    """Return the value of a line in a list; none of a last line that was not written to its end."""
    try:
        value = json.loads(text)
        if number == 1 or (isinstance(value["key"], str) and "value" in value):
            return [value]
    except (ValueError, KeyError, TypeError):
        pass
    if number == count:
        return []
    raise _not_a_journal(path, number)


def _not_a_journal(path: Path, line: int) -> InvalidValueError:
    return InvalidValueError(
        f"{path}: line {line} is not a result of a search; delete the file to begin again"
    )
