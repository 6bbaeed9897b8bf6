"""Collects the error texts of all releases, and keeps them as one table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from failure_texts import cpp_texts, python_texts
from failure_texts.repositories import REPOSITORIES, Repository

_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"(?<!\S)['\"(\[]?[A-Za-z_.-]{2,}")
_FEWEST_WORDS = 3
#: Where the sources of a repository were in the server's, until they got one of their own.
_FORMER_PLACES = {"src/core/": "core", "src/backends/tensorrt/": "tensorrt_backend"}


class Text(NamedTuple):
    """An error text: where it is written, and the first and last release that have it."""

    repository: str
    file: str
    first: str
    last: str
    text: str


def collect(folders: Mapping[str, Path]) -> list[Text]:
    """Return the texts of all releases in the given git repositories.

    Args:
        folders: The git directory of each repository, such as ``{"core": Path(...)}``.
    """
    releases: dict[tuple[str, str], set[str]] = {}
    files: dict[tuple[str, str], str] = {}
    for name, folder in folders.items():
        for release, path, text in _of_repository(Repository(folder)):
            owner = next((o for start, o in _FORMER_PLACES.items() if path.startswith(start)), name)
            releases.setdefault((owner, text), set()).add(release)
            files[owner, text] = path.rpartition("/")[2]
    found = [
        Text(owner, files[owner, text], min(seen), max(seen), text)
        for (owner, text), seen in releases.items()
    ]
    return sorted(found, key=lambda text: (REPOSITORIES.index(text.repository), text.text))


def _of_repository(repository: Repository) -> Iterator[tuple[str, str, str]]:
    """Yield release, path and text of each error."""
    of_blob: dict[str, tuple[str, ...]] = {}
    for release, reference in repository.releases().items():
        for path, blob in repository.files(reference):
            if blob not in of_blob:
                of_blob[blob] = tuple(_texts(path, repository.content(blob)))
            for text in of_blob[blob]:
                yield release, path, text


def _texts(path: str, source: str) -> Iterator[str]:
    reader = python_texts if path.endswith(".py") else cpp_texts
    for text in reader.texts(source):
        # What the server puts before a text, such as the id of the request, is no part of it.
        plain = _SPACES.sub(" ", text).strip().removeprefix(cpp_texts.HOLE).lstrip()
        if len(_WORD.findall(plain)) >= _FEWEST_WORDS:
            yield plain
