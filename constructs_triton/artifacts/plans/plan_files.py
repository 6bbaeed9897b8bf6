"""The files of a plan that was built, and where they are kept on this machine.

A folder below the user's cache has the key of the build as its name. It is renamed to it when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from constructs_triton.errors import InvalidValueError
from constructs_triton.model_files import describe
from constructs_triton.model_files.plan_manifest import MANIFEST_FILE, PlanManifest, read_manifest
from constructs_triton.model_repository.cache_location import cache_directory
from constructs_triton.model_repository.temporary_folders import partial_folder, remove_abandoned

__all__ = ["LOG_FILE", "PLAN_FILE", "BuiltPlan", "PlanCache", "describe_built_plan"]

PLAN_FILE, LOG_FILE = "model.plan", "trtexec.log"


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

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or cache_directory() / "plans"

    def find(self, key: str) -> BuiltPlan | None:
        """Return the plan of a key. A plan that is not complete, or was changed, counts as missing."""
        folder = self._directory / key
        try:
            manifest = read_manifest(folder / MANIFEST_FILE)
            if manifest is None or manifest.key != key:
                return None
            found = BuiltPlan(folder, manifest)
            is_same = found.plan.stat().st_size == manifest.plan_bytes and found.log.is_file()
        except (InvalidValueError, OSError):
            return None
        return found if is_same else None

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """Create a folder to fill; it is deleted unless ``keep`` has moved it.

        Raises:
            InvalidValueError: the cache cannot be written.
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            remove_abandoned(self._directory)
            with partial_folder(self._directory) as folder:
                yield folder
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidValueError(
                f"{self._directory}: cannot be written ({reason}); set CONSTRUCTS_TRITON_CACHE_DIR to a "
                f"folder "
                "with enough space"
            ) from None

    def keep(self, draft: Path, manifest: PlanManifest) -> BuiltPlan:
        """Write the manifest into a filled draft, and keep it under the key of the manifest."""
        content = draft / "content"
        text = json.dumps(manifest.to_dict(), indent=2) + "\n"
        (content / MANIFEST_FILE).write_text(text, encoding="utf-8")
        target = self._directory / manifest.key
        with suppress(FileNotFoundError):  # an incomplete one
            target.replace(draft / "replaced")
        content.replace(target)
        return BuiltPlan(target, manifest)


def describe_built_plan(plan: Path) -> tuple[str, int, str]:
    """Return the TensorRT of a plan's header, the size and the SHA-256 of a plan.

    Raises:
        InvalidValueError: it is not a plan.
    """
    described = describe(plan, model_format="tensorrt_plan")
    if described.faults:
        fault = described.faults[0]
        raise InvalidValueError(f"{plan}: {fault.message}; look at trtexec.log of the job")
    digest = hashlib.sha256()
    with plan.open("rb") as file:
        shutil.copyfileobj(file, _Hashing(digest))
    return described.versions.get("tensorrt", ""), plan.stat().st_size, digest.hexdigest()


class _Hashing:
    def __init__(self, digest: hashlib._Hash) -> None:
        self._digest = digest

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        return len(data)
