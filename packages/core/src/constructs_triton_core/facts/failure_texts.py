"""The error texts of Triton and its backends, as their sources have them.

``dev/failure_texts`` reads them from the sources of each release, and writes
``failure_texts.json``. A text has holes, ``⟨⟩``, where the server puts a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from constructs_triton_core.facts import load

__all__ = ["SourceText", "find_texts", "known_texts"]

HOLE = "⟨⟩"
#: Shorter texts are parts of too many sentences.
_FEWEST_CHARACTERS = 20
_WORD = re.compile(r"[A-Za-z_]{3,}")


class SourceText(NamedTuple):
    """An error text: the entry of the catalogue that explains it, and where it is written.

    ``first`` is the first release that has it. ``last`` is the last one, or ``None`` if the newest
    release that was read has it.
    """

    id: str
    repository: str
    file: str
    first: str
    last: str | None
    text: str

    @property
    def writer(self) -> str:
        """Who writes the text, and in which releases."""
        releases = f"since {self.first}" if self.last is None else f"{self.first} to {self.last}"
        return f"Triton's {self.repository}, {self.file} ({releases})"

    def is_in(self, line: str) -> bool:
        """Whether a line contains the text: its parts, in order, with or without its full stop."""
        position = 0
        for part in self.text.removesuffix(".").split(HOLE):
            position = line.find(part, position)
            if position < 0:
                return False
            position += len(part)
        return True


@cache
def known_texts() -> tuple[SourceText, ...]:
    """Return the texts of all releases."""
    content = load("failure_texts")
    newest: dict[str, str] = content["newest"]
    texts = []
    for entry, rows in content["texts"].items():
        if not entry:  # texts that no entry explains
            continue
        for repository, file, first, last, text in rows:
            until = None if last == newest[repository] else last
            texts.append(SourceText(entry, repository, file, first, until, text))
    return tuple(texts)


def find_texts(line: str) -> list[SourceText]:
    """Return the texts that a line contains, the longest first."""
    words = line.replace("\\n", " ")  # two characters in messages of Python's exceptions
    found = [text for text in _candidates(words) if text.is_in(words)]
    return sorted(found, key=lambda text: -len(text.text))


def _candidates(line: str) -> Iterator[SourceText]:
    """Yield the texts whose rarest word is in the line, so that a long log is read quickly."""
    index = _by_rarest_word()
    for word in {*_WORD.findall(line)}:
        yield from index.get(word, ())


@cache
def _by_rarest_word() -> dict[str, list[SourceText]]:
    counts: dict[str, int] = {}
    words = {text: _whole_words(text.text) for text in known_texts()}
    for found in words.values():
        for word in found:
            counts[word] = counts.get(word, 0) + 1
    index: dict[str, list[SourceText]] = {}
    for text, found in words.items():
        if found and len(text.text.replace(HOLE, "")) >= _FEWEST_CHARACTERS:
            index.setdefault(min(found, key=counts.__getitem__), []).append(text)
    return index


def _whole_words(text: str) -> set[str]:
    """Return the words of a text that no hole can lengthen."""
    joined = text.replace(HOLE, "\0")
    return {
        match[0]
        for match in _WORD.finditer(joined)
        if "\0" not in joined[max(0, match.start() - 1) : match.end() + 1]
    }
