"""The names of the models of a multi-model container,
and hints for a ``TargetModel`` that does not exist.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from constructs_triton_core.model_index import INDEX_FILE, ModelIndex, some_of
from constructs_triton_core.spelling import closest
from constructs_triton_tools.local.sources.specs import ContainerSpec

# Of "digits-3f9c2a1b.tar.gz": "digits".
_DIGEST = re.compile(r"(.+)-[0-9a-f]{8}\.tar\.gz")


def read_index(container: ContainerSpec) -> ModelIndex | None:
    """Return the index that the endpoint has in AWS; ``None`` if it has none.

    It is that of the folder in place of S3, of the deployment, or of a deployed endpoint.

    Raises:
        InvalidValueError: ``index.json`` is damaged.
    """
    uri = f"{container.model_data_url.rstrip('/')}/{INDEX_FILE}"
    if container.archive_folder is not None or container.fetch_archive is not None:
        path = _index_file(container)
        return None if path is None else ModelIndex.from_json(path.read_bytes(), uri)
    if not container.indexed:
        return None
    merged: dict[str, str] = {}
    for index in container.indexed.values():
        merged |= index
    return ModelIndex(merged, uri)


def _index_file(container: ContainerSpec) -> Path | None:
    """Return the file with the names of a container's models; ``None`` if it has none."""
    if container.fetch_archive is not None:
        return container.fetch_archive(INDEX_FILE)
    if container.archive_folder is None:
        return None
    path = container.archive_folder / INDEX_FILE
    return path if path.is_file() else None


def which_archives(container: ContainerSpec, archives: Sequence[str], folder: Path) -> str:
    """Return a sentence that says which archives can be called.

    ``archives`` are those on this machine, and ``folder`` is the one in place of the S3 prefix.
    """
    if container.fetch_archive is not None:
        return f"Its archives are those below {container.model_data_url}"
    if not archives:
        return "It has no archives"
    return f"Its archives: {some_of(archives, list_command(folder))}"


def list_command(folder: Path) -> str:
    """Return the command that lists the archives of a folder."""
    return f"ls {shlex.quote(str(folder))}"


def hint_for(target_model: str, index: ModelIndex | None, archives: Sequence[str]) -> str:
    """Return what the caller probably meant; empty if nothing is similar."""
    names = {} if index is None else index.target_models
    if target_model in names:
        return (
            f'"{target_model}" is the name of a model: set TargetModel to its archive '
            f'"{names[target_model]}", or use TritonClient, which finds the archive. '
        )
    former = _DIGEST.fullmatch(target_model)
    if former is not None and former[1] in names:
        return f'The archive of "{former[1]}" is "{names[former[1]]}". '
    guess = closest(target_model, [*names, *archives])
    return "" if guess is None else f'Did you mean "{names.get(guess, guess)}"? '
