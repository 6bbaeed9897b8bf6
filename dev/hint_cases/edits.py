"""The edits with which a user follows a hint."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triton_model_check.model_config.target import Target


@dataclass
class Repository:
    """A repository and its endpoint, as the user changes them."""

    path: Path
    target: Target | None


Step = Callable[[Repository], None]
"""One thing that a user does."""


def file(name: str, old: str, new: str) -> Step:
    """Replace a part of a file, which occurs in it."""

    def edit(repository: Repository) -> None:
        path = repository.path / name
        text = path.read_bytes().decode()
        assert old in text, f"{name} does not contain {old!r}"
        path.write_bytes(text.replace(old, new, 1).encode())

    return edit


def config(old: str, new: str) -> Step:
    """Replace a part of the configuration of the model ``m``."""
    return file("m/config.pbtxt", old, new)


def ensemble(old: str, new: str) -> Step:
    """Replace a part of the configuration of the ensemble ``pipe``."""
    return file("pipe/config.pbtxt", old, new)


def add(name: str, content: str | bytes = "") -> Step:
    """Create a file, or replace it."""

    def create(repository: Repository) -> None:
        path = repository.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return create


def delete(name: str) -> Step:
    """Delete a file or a folder."""

    def remove(repository: Repository) -> None:
        path = repository.path / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    return remove


def move(old: str, new: str) -> Step:
    """Rename a file or a folder, or move it into another folder."""

    def rename(repository: Repository) -> None:
        (repository.path / new).parent.mkdir(parents=True, exist_ok=True)
        (repository.path / old).rename(repository.path / new)

    return rename


def use_folder(name: str) -> Step:
    """Pass another folder to the command, relative to the one that was passed."""

    def use(repository: Repository) -> None:
        repository.path = (repository.path / name).resolve()

    return use


def endpoint(**changes: Any) -> Step:
    """Change the endpoint."""

    def change(repository: Repository) -> None:
        repository.target = replace(repository.target or Target(), **changes)

    return change
