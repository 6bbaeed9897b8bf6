"""Checks that every ``--stand-in`` names a model of the run, before a server starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from constructs_triton_core.errors import ArchiveError, InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, variants_of
from triton_model_check.model_config.folder import CONFIG_FILE
from triton_model_check.model_repository.member_checks import normalize
from triton_model_check.untrusted.tar_reader import read_members

#: The folder into which an archive is unpacked. It is the name of a model with its config.pbtxt at the root.
_ROOT_MODEL = "model"


def check_replaced_names(given: Iterable[str], specs: Sequence[EndpointSpec]) -> None:
    """Check that each name is that of a model, or of an archive and a model in it.

    Nothing is checked if a multi-model endpoint gets its archives later. Archives are read only until all
    names are found.
    """
    missing, known = set(given), set[str]()
    containers = [variant.container for _, variant in variants_of(specs)]
    if not missing or any(_gets_archives_later(container) for container in containers):
        return
    for name in (name for container in containers for name in _names(container, missing)):
        known.add(name)
        missing.discard(name)
        if not missing:
            return
    raise _unknown(min(missing), known)


def _gets_archives_later(container: ContainerSpec) -> bool:
    return container.is_multi_model and (container.fetch_archive is not None or not container.archives)


def _names(container: ContainerSpec, wanted: Iterable[str]) -> Iterator[str]:
    if container.files is not None:
        yield from _models_of(container.files)
    if container.archive is not None:
        yield from _models_in(container.archive)
    for target_model in sorted(container.archives, key=lambda key: not _is_named(key, wanted)):
        for model in _models_in(container.archives[target_model]):
            yield model
            yield f"{target_model}/{model}"


def _is_named(target_model: str, wanted: Iterable[str]) -> bool:
    return any(name.startswith(f"{target_model}/") for name in wanted)


def _models_in(archive: Path) -> Iterator[str]:
    with suppress(ArchiveError):  # reported when the archive is unpacked
        for member in read_members(archive):
            yield from _models_of([f"{normalize(member.name)}/" if member.is_directory else member.name])


def _models_of(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        folder, slash, _ = normalize(path).partition("/")
        if slash or path.endswith("/"):
            yield folder
        elif folder == CONFIG_FILE:
            yield _ROOT_MODEL


def _unknown(name: str, known: Iterable[str]) -> InvalidValueError:
    names = sorted(filter(None, known))
    alike = [each for each in names if ("/" in each) == ("/" in name)] or names
    hint = " ".join(filter(None, [did_you_mean(name, names), f"the models are {quoted(alike)}"]))
    return InvalidValueError(f'--stand-in: no model of this run has this name, got "{name}"; {hint}')
