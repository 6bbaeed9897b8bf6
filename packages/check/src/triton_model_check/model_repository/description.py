"""``triton-models.toml``: what a user declares about the models of a folder, for the app and the
commands.

The file may come from others, so it and the requirements that it names must be inside the folder.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.versions import parse_version
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.memory.estimate import DeclaredMemory
from triton_model_check.model_repository.composition import (
    ALL_MODELS,
    DESCRIPTION_FILE,
    CompositionOptions,
)
from triton_model_check.untrusted.toml_files import TomlFile, is_inside

_CALLS = "calls"
_ALSO_SERVED = "also_served"
_ENVIRONMENTS = "python_environments"
_MEMORY = "memory"
_SHARED = "shared_files"
_KEYS = (_ALSO_SERVED, _CALLS, _ENVIRONMENTS, _MEMORY, _SHARED)
_GPU_MIB = "gpu_mib"
_HOST_MIB = "host_mib"
_SHM_MIB = "shm_mib"
_REQUIREMENTS = "requirements"
_IMAGE_VERSION = "image_version"
_EXAMPLES = {
    _ALSO_SERVED: 'also_served = ["MODEL"]',
    _CALLS: 'CALLER = ["MODEL"] below [calls]',
    _ENVIRONMENTS: 'MODEL = { requirements = "requirements.txt" } below [python_environments]',
    _MEMORY: "MODEL = { gpu_mib = 3000, host_mib = 500 } below [memory]",
    _SHARED: '"PATH" = ["MODEL", "MODEL-*"] below [shared_files]',
}


@dataclass(frozen=True, slots=True)
class DescribedEnvironment:
    """The packages of one model, or of all Python models; without a version,
    for the default image.
    """

    requirements: Path
    image_version: str | None = None


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """The content of the file; ``environments`` are by model, or by ``ALL_MODELS`` alone.

    ``memory`` is what each instance of a model takes, and ``shared_memory`` what its largest call
    takes of ``/dev/shm``, in bytes. ``shared_files`` are paths below the folder, each with patterns
    of the models that have a copy in their version directories.
    """

    file: TomlFile
    composition: CompositionOptions
    environments: Mapping[str, DescribedEnvironment]
    memory: Mapping[str, DeclaredMemory] = field(default_factory=dict)
    shared_memory: Mapping[str, int] = field(default_factory=dict)
    shared_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> ModelDescription:
        """Read the file in a folder of models."""
        file = TomlFile.read(folder / DESCRIPTION_FILE)
        file.refuse_unknown((), file.document, _KEYS)

        calls: dict[str, tuple[str, ...]] = {}
        for name, models in _table(file, (_CALLS,)).items():
            calls[name] = _names(file, (_CALLS, name), models)
        also_served = _names(file, (_ALSO_SERVED,), file.document.get(_ALSO_SERVED, []))

        environments = {name: _environment(file, name) for name in _table(file, (_ENVIRONMENTS,))}
        if ALL_MODELS in environments and len(environments) > 1:
            raise file.error(
                (_ENVIRONMENTS, ALL_MODELS),
                "stands for all models of the Python backend; remove it, or the other models",
            )

        memory: dict[str, DeclaredMemory] = {}
        shared_memory: dict[str, int] = {}
        for name in _table(file, (_MEMORY,)):
            sizes = _mebibytes(file, name)
            if _SHM_MIB in sizes:
                shared_memory[name] = sizes.pop(_SHM_MIB) * 2**20
                if not sizes:
                    continue  # it says nothing of the weights
            memory[name] = DeclaredMemory(
                sizes.get(_GPU_MIB, 0) * 2**20, sizes.get(_HOST_MIB, 0) * 2**20
            )
        composition = CompositionOptions(calls, also_served)
        shared = {path: _shared(file, path) for path in _table(file, (_SHARED,))}
        return cls(file, composition, environments, memory, shared_memory, shared)

    def refuse_unknown(self, models: Iterable[str]) -> None:
        """Check that the models which the file names exist;
        a check reports called models that do not.
        """
        known = list(models)
        named = [(_CALLS, name) for name in self.composition.calls]
        named += [(_ENVIRONMENTS, name) for name in self.environments if name != ALL_MODELS]
        named += [(_MEMORY, name) for name in {**self.memory, **self.shared_memory}]
        named += [(_ALSO_SERVED, name) for name in self.composition.also_served]
        for keyword, name in named:
            if name in known:
                continue
            hint = did_you_mean(name, known, f"its models are {quoted(known)}")
            if name in _KEYS:  # it is below the header of a table
                hint = "move this key above the first [table]"
            raise InvalidValueError(
                f"{self.file.place(keyword, name)}: {keyword}: the folder has no model of that "
                f'name, got "{name}"; {hint}'
            )
        self._refuse_unmatched(known)

    def _refuse_unmatched(self, known: list[str]) -> None:
        """Check that each pattern of a model with shared files matches one."""
        for path, patterns in self.shared_files.items():
            for pattern in patterns:
                if any(fnmatch.fnmatchcase(name, pattern) for name in known):
                    continue
                hint = did_you_mean(pattern, known, f"its models are {quoted(known)}")
                raise self.file.error(
                    (_SHARED, path), f'no model of the folder matches "{pattern}"; {hint}'
                )

    def shared_with(self, model: str) -> list[Path]:
        """Return the files and folders that have a copy in the versions of a model."""
        folder = self.file.path.parent
        return [
            folder / path
            for path, patterns in self.shared_files.items()
            if any(fnmatch.fnmatchcase(model, pattern) for pattern in patterns)
        ]

    def combine(self, given: CompositionOptions) -> CompositionOptions:
        """Return the options of the file and those of the code or the command."""
        own = self.composition
        given_calls = _sorted_calls(given)
        own_calls = _sorted_calls(own)
        if given_calls and own_calls and given_calls != own_calls:
            raise self.differs(f"{_CALLS} (--called-models)", _CALLS, given_calls, own_calls)

        given_served = sorted(set(given.also_served))
        own_served = sorted(set(own.also_served))
        if given_served and own_served and given_served != own_served:
            raise self.differs(_ALSO_SERVED, _ALSO_SERVED, given_served, own_served)
        return CompositionOptions(given.calls or own.calls, given.also_served or own.also_served)

    def differs(self, argument: str, key: str, given: object, own: object) -> InvalidValueError:
        """Return the error for an argument that has another value than the file."""
        return InvalidValueError(
            f"{argument}: must equal {key} of {self.file.place(key)}, got {given} for the argument "
            f"and {own} in the file; remove the argument, or correct the file"
        )


def _sorted_calls(options: CompositionOptions) -> dict[str, list[str]]:
    """The models that each model calls, in an order that can be compared."""
    return {caller: sorted(set(called)) for caller, called in options.calls.items()}


def _table(file: TomlFile, keys: Sequence[str]) -> dict[str, Any]:
    value: Any = file.document
    for key in keys:
        value = value.get(key, {})
    if not isinstance(value, dict):
        raise file.malformed(keys, value, "a table", _EXAMPLES[keys[0]])
    return value


def _names(file: TomlFile, keys: Sequence[str], value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise file.malformed(keys, value, "a list of names of models", _EXAMPLES[keys[0]])
    return tuple(value)


def _mebibytes(file: TomlFile, name: str) -> dict[str, int]:
    """Return what is declared of a model, in MiB."""
    keys = (_MEMORY, name)
    table = _table(file, keys)
    file.refuse_unknown(keys, table, (_GPU_MIB, _HOST_MIB, _SHM_MIB))
    for key, value in table.items():
        if type(value) is not int or not 0 <= value < 2**31:
            raise file.malformed((*keys, key), value, "a number of MiB", f"{key} = 3000")
    return dict(table)


def _environment(file: TomlFile, name: str) -> DescribedEnvironment:
    keys = (_ENVIRONMENTS, name)
    table = _table(file, keys)
    file.refuse_unknown(keys, table, (_REQUIREMENTS, _IMAGE_VERSION))
    version = _image_version(file, (*keys, _IMAGE_VERSION), table.get(_IMAGE_VERSION))
    requirements = _requirements(file, (*keys, _REQUIREMENTS), table.get(_REQUIREMENTS))
    return DescribedEnvironment(requirements, version)


def _shared(file: TomlFile, path: str) -> tuple[str, ...]:
    """Return the patterns of the models that share a file or a folder."""
    keys = (_SHARED, path)
    patterns = file.document[_SHARED][path]
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        raise file.malformed(keys, patterns, "a list of names of models", _EXAMPLES[_SHARED])
    folder = file.path.parent
    if "\0" in path or not is_inside(folder / path, folder):
        raise file.error(
            keys, f'must be in the folder of {DESCRIPTION_FILE}, got "{path}"; move it there'
        )
    if not (folder / path).exists():
        raise file.error(keys, f'does not exist, got "{path}"; correct the path')
    return tuple(patterns)


def _image_version(file: TomlFile, place: Sequence[str], version: object) -> str | None:
    if version is None:
        return None
    if not isinstance(version, str):
        raise file.malformed(place, version, "a string", 'image_version = "26.05"')
    parse_version(version, f"{file.place(*place)}: {'.'.join(place)}")
    return version


def _requirements(file: TomlFile, place: Sequence[str], given: object) -> Path:
    """Return the path of a file of requirements, which must be in the folder."""
    if not isinstance(given, str):
        raise file.malformed(place, given, "the path of a file", _EXAMPLES[_ENVIRONMENTS])
    folder = file.path.parent
    if "\0" in given or not is_inside(folder / given, folder):
        raise file.error(
            place,
            f'must be a file in the folder of {DESCRIPTION_FILE}, got "{given}"; move it there',
        )
    return folder / given
