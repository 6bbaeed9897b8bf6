"""The files of a plan that was built, and where they are kept on this machine.

A folder below the user's cache has the key of the build as its name. It is renamed to it when it is
complete, with a seal of its files.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.cache_contract import (
    Seal,
    own_folder,
    set_time_back,
    sha256_of,
)
from constructs_triton_core.untrusted.drafts import partial_folder
from constructs_triton_core.untrusted.written_files import new_folder, written_whole
from triton_model_check.model_files import describe
from triton_model_check.model_files.plan_manifest import MANIFEST_FILE, PlanManifest, read_manifest
from triton_model_check.untrusted.cache_location import cache_directory

PLAN_FILE = "model.plan"
LOG_FILE = "trtexec.log"
_FOLDER = "plans"
_SEAL = "seal.json"


@dataclass(frozen=True, slots=True)
class BuiltPlan:
    """A complete plan in ``folder``: ``model.plan``, ``trtexec.log`` and ``plan.json``."""

    folder: Path
    manifest: PlanManifest

    @property
    def plan(self) -> Path:
        """Path of ``model.plan``."""
        return self.folder / PLAN_FILE

    @property
    def log(self) -> Path:
        """Path of the output of ``trtexec``."""
        return self.folder / LOG_FILE


class PlanCache:
    """The plans that this user has built or downloaded."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or cache_directory()
        self._directory = self._root / _FOLDER

    def find(self, key: str) -> BuiltPlan | None:
        """Return the plan of a key.

        A plan that is not complete, or was changed, counts as missing.
        """
        folder = self._directory / key
        if not folder.is_dir():
            return None
        with self._explained():
            own_folder(self._root, _FOLDER, is_optional=False)
        try:
            seal = Seal.read(folder / _SEAL, key).use(folder / _SEAL, _files(folder))
            manifest = read_manifest(folder / MANIFEST_FILE)
        except (InvalidValueError, OSError, ValueError):
            return None
        is_its_plan = manifest is not None and (manifest.key, manifest.plan_sha256) == (
            key,
            seal.files[PLAN_FILE].digest,
        )
        return BuiltPlan(folder, manifest) if manifest is not None and is_its_plan else None

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """Create a folder to fill; it is deleted unless ``keep`` has moved it."""
        with self._explained():
            own_folder(self._root, _FOLDER, create=True, is_optional=False)
            with partial_folder(self._directory) as folder:
                yield folder

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidValueError(
                f"{error.filename or self._directory}: cannot be used for plans ({reason}); set "
                "CONSTRUCTS_TRITON_CACHE_DIR to a folder of your own with enough space"
            ) from None

    def keep(self, draft: Path, manifest: PlanManifest) -> BuiltPlan:
        """Write the manifest into a filled draft, and keep it under the key of the manifest."""
        content = draft / "content"
        _write_manifest(content, manifest)
        for path in _files(content).values():
            set_time_back(path)
        Seal.of(manifest.key, _files(content)).write(content / _SEAL)
        target = self._directory / manifest.key
        with suppress(FileNotFoundError):  # an incomplete one
            target.replace(draft / "replaced")
        content.replace(target)
        return BuiltPlan(target, manifest)


def describe_built_plan(plan: Path) -> tuple[str, int, str]:
    """Return the TensorRT of a plan's header, the size and the SHA-256 of a plan."""
    described = describe(plan, model_format="tensorrt_plan")
    if described.faults:
        fault = described.faults[0]
        raise InvalidValueError(f"{plan}: {fault.message}; look at trtexec.log of the job")
    return described.versions.get("tensorrt", ""), plan.stat().st_size, sha256_of(plan)


def _write_manifest(folder: Path, manifest: PlanManifest) -> None:
    text = json.dumps(manifest.to_dict(), indent=2) + "\n"
    (folder / MANIFEST_FILE).write_text(text, encoding="utf-8", newline="\n")


def _files(folder: Path) -> dict[str, Path]:
    return {name: folder / name for name in (PLAN_FILE, LOG_FILE, MANIFEST_FILE)}


def check_destination(folder: Path) -> None:
    """Refuse to replace a folder that this command has not written."""
    if os.path.lexists(folder) and not (folder / MANIFEST_FILE).is_file():
        raise InvalidValueError(
            f"{folder}: already exists and was not compiled; "
            "choose another folder with --output, or another --name"
        )


def write_compiled(
    output: Path, gpu_folder: str, config_text: str, name: str, built: BuiltPlan
) -> Path:
    """Write the model's folder into the repository of the GPU;
    it is there complete or not at all.
    """
    repository = output / gpu_folder
    target = repository / name
    try:
        repository.mkdir(parents=True, exist_ok=True)
        check_destination(target)
        with partial_folder(output) as draft:
            model = draft / name
            (model / "1").mkdir(parents=True)
            shutil.copyfile(built.plan, model / "1" / "model.plan")
            _write_manifest(model, built.manifest)
            (model / "config.pbtxt").write_text(config_text, encoding="utf-8", newline="\n")
            with suppress(FileNotFoundError):
                target.replace(draft / "replaced")
            model.replace(target)
        logs = new_folder(output / "logs" / gpu_folder)
        with built.log.open("rb") as log, written_whole(logs / f"{name}.log") as copy:
            shutil.copyfileobj(log, copy)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidValueError(
            f"{target}: cannot be written ({reason}); "
            "choose a folder that you may write with --output"
        ) from None
    return target
