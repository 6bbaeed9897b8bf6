"""Loads and unloads the models of a multi-model container, as SageMaker does.

A model is loaded when it is first called and stays loaded while there is memory. When the container
answers 507, or the server uses more memory than its limit, the least recently used model without a
request in progress is unloaded; its unpacked files stay on disk. With ``ModelCacheSetting``
``Disabled`` a model is unloaded after each call and its files are deleted.
Source: AWS documentation on multi-model endpoints; triton server src/sagemaker_server.cc for the
answers.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import aiohttp

from constructs_triton_core.errors import (
    ArchiveError,
    InvalidValueError,
    LocalEndpointError,
    MissingDependencyError,
)
from constructs_triton_core.model_index import ModelIndex
from constructs_triton_tools.local.gateway.model_names import hint_for, read_index, which_archives
from constructs_triton_tools.local.gateway.runtime_errors import (
    RuntimeApiError,
    model_error,
    model_not_ready,
    validation_error,
)
from constructs_triton_tools.local.running_container import RunningContainer
from constructs_triton_tools.local.server.unpacking import unpack
from constructs_triton_tools.local.sources.specs import EndpointSpec

TARGET_MODEL_HEADER = "X-Amzn-SageMaker-Target-Model"
#: How long a caller waits for a model to load. Loading may take longer and continues.
_CALLER_TIMEOUT_SECONDS = 60.0
_LOAD_TIMEOUT = aiohttp.ClientTimeout(total=360.0)


class _Answer(NamedTuple):
    status: int
    body: bytes


class MultiModelContainer:
    """Loads and unloads the models below a prefix.

    ``prefix`` is the folder in place of the S3 prefix. An archive that is copied there can be
    called immediately. ``memory_limit_bytes`` limits the memory of the server and its child
    processes together. A single model above the limit stays loaded.
    """

    def __init__(
        self,
        endpoint: EndpointSpec,
        server: RunningContainer,
        memory_limit_bytes: int,
    ) -> None:
        self._endpoint = endpoint
        self._server = server
        self._memory_limit_bytes = memory_limit_bytes
        self._generation = server.generation
        self._loaded: OrderedDict[str, None] = OrderedDict()
        self._loads: dict[str, asyncio.Task[None]] = {}
        self._uses: Counter[str] = Counter()
        self._discards: set[asyncio.Task[None]] = set()
        self._caches = server.container.model_cache_setting != "Disabled"
        # One change at a time: servers before 2.65 fail when a load and an unload overlap.
        self._change = asyncio.Lock()

    @property
    def url(self) -> str:
        """The S3 prefix of the archives."""
        return self._server.container.model_data_url

    @property
    def prefix(self) -> Path:
        """The folder in place of the S3 prefix."""
        return self._server.directory / "prefix"

    @property
    def folder(self) -> Path:
        """The folder where archives can be added: below the folder in place of S3,
        if there is one.
        """
        return self._server.container.archive_folder or self.prefix

    @property
    def loaded_models(self) -> tuple[str, ...]:
        """The target models that are loaded, least recently used first."""
        return tuple(self._loaded)

    @property
    def loading_models(self) -> frozenset[str]:
        """The target models that are being loaded."""
        return frozenset(self._loads)

    def unpacked(self, target_model: str) -> Path:
        """Return the folder of a target model's files, which exists from its first load on."""
        return self._directory(target_model) / "model"

    def place(self, archives: Mapping[str, Path]) -> None:
        """Link the archives that the deployment would copy to the prefix."""
        self.prefix.mkdir()
        for target_model, path in archives.items():
            self._link(target_model, path)

    @asynccontextmanager
    async def use(self, target_model: str) -> AsyncIterator[str]:
        """Yield the server's path for requests to this model, and keep the model loaded inside the
        block.

        Raises:
            RuntimeApiError: there is no such archive, the server rejects it, or loading takes too
                long.
        """
        self._forget_after_restart()
        self._uses[target_model] += 1
        try:
            if target_model not in self._loaded:
                await self._wait_for_load(target_model)
            if target_model in self._loaded:
                self._loaded.move_to_end(target_model)
            yield f"/models/{_hash(target_model)}/invoke"
        finally:
            self._release(target_model)

    def _release(self, target_model: str) -> None:
        self._uses[target_model] -= 1
        if self._uses[target_model] == 0:
            del self._uses[target_model]
            if not self._caches:
                discard = asyncio.create_task(self._discard(target_model))
                self._discards.add(discard)
                discard.add_done_callback(self._discards.discard)

    async def _discard(self, target_model: str) -> None:
        async with self._change:
            if target_model in self._loaded and target_model not in self._uses:
                with suppress(RuntimeApiError):  # the server has just ended, so nothing is loaded
                    await self._unload(target_model)
                await asyncio.to_thread(
                    shutil.rmtree, self._directory(target_model), ignore_errors=True
                )

    def _forget_after_restart(self) -> None:
        if self._generation != self._server.generation:
            self._generation = self._server.generation
            self._loaded.clear()

    async def _wait_for_load(self, target_model: str) -> None:
        load = self._loads.get(target_model)
        if load is None:
            load = asyncio.create_task(self._load(target_model))
            self._loads[target_model] = load
            load.add_done_callback(lambda _: self._loads.pop(target_model, None))
            # Every caller may have stopped waiting, and asyncio warns about an exception that is
            # never read.
            load.add_done_callback(lambda task: task.cancelled() or task.exception())
        done, _ = await asyncio.wait({load}, timeout=_CALLER_TIMEOUT_SECONDS)
        if not done:
            raise model_not_ready(target_model)
        load.result()

    def archive(self, target_model: str) -> Path:
        """Return the archive of a target model, downloaded if needed."""
        path = self._find(target_model)
        if path is None:
            bucket, _, prefix = self.url.removeprefix("s3://").partition("/")
            raise validation_error(
                f"Failed to download model data(bucket: {bucket}, key: {prefix}{target_model}). "
                "Please ensure that there is an object located at the URL and that the role passed "
                f"to CreateModel has permissions to download the model. {self._hint(target_model)}"
                f"{self.archives_note()}"
            )
        return path

    def _find(self, target_model: str) -> Path | None:
        """Return the archive's file, downloaded if needed;
        ``None`` if there is no object with this key.
        """
        key = PurePosixPath(target_model)
        # S3 compares keys character by character, while a path may be written in several ways.
        if str(key) != target_model or key.is_absolute() or ".." in key.parts:
            return None
        places = [self.prefix / key, self.folder / key]
        try:
            if not any(path.is_file() for path in places):
                self._fetch(target_model)
            return next((path for path in places if path.is_file()), None)
        except OSError:  # no file can have this name, for instance one of over 255 bytes
            return None

    def archives_note(self) -> str:
        """Return a sentence that says which archives can be called, for messages."""
        return which_archives(self._server.container, self.archive_names(), self.folder)

    def index(self) -> ModelIndex | None:
        """Return the index of the models, as it is now; ``None`` if there is none."""
        return read_index(self._server.container)

    def _hint(self, target_model: str) -> str:
        with suppress(InvalidValueError):
            return hint_for(target_model, self.index(), self.archive_names())
        return ""

    def archive_names(self) -> list[str]:
        """Return the names of the archives on this machine, in alphabetical order."""
        names: set[str] = set()
        for place, pattern in ((self.folder, "*.tar.gz"), (self.prefix, "*")):
            files = (path for path in place.rglob(pattern) if path.is_file())
            names.update(str(path.relative_to(place)) for path in files)
        return sorted(names)

    def _fetch(self, target_model: str) -> None:
        """Download an archive of a deployed endpoint, if there is one."""
        fetch = self._server.container.fetch_archive
        archive = None if fetch is None else fetch(target_model)
        if archive is not None:
            self._link(target_model, archive)

    def _link(self, target_model: str, archive: Path) -> None:
        link = self.prefix / target_model
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(archive.resolve())

    async def _load(self, target_model: str) -> None:
        archive = await asyncio.to_thread(self.archive, target_model)
        async with self._change:
            url = await self._unpack(target_model, archive)
            answer = await self._post_load(target_model, url)
            while answer.status == 507 and await self._unload_oldest():
                answer = await self._post_load(target_model, url)
            if answer.status not in (200, 409):
                shutil.rmtree(self._directory(target_model), ignore_errors=True)
                raise model_error(self._endpoint, answer.status, answer.body)
            self._loaded[target_model] = None
            await self._shrink(keep=target_model)

    async def _unpack(self, target_model: str, archive: Path) -> str:
        """Unpack the archive if needed, and return the url under which the
        server loads the model.
        """
        directory = self._directory(target_model)
        if not (directory / "model").exists():
            try:
                await asyncio.to_thread(unpack, archive, directory / "model")
            except ArchiveError as error:
                shutil.rmtree(directory, ignore_errors=True)
                raise validation_error(f"Failed to extract model data archive: {error}") from error
            await asyncio.to_thread(self._prepare, directory / "model", target_model)
        return self._server.load_url(directory)

    def _prepare(self, model: Path, target_model: str) -> None:
        try:
            self._server.prepare_target_model(model, target_model)
        except (LocalEndpointError, MissingDependencyError) as error:
            shutil.rmtree(model.parent, ignore_errors=True)
            raise model_error(self._endpoint, 400, json.dumps({"error": str(error)})) from error

    def _directory(self, target_model: str) -> Path:
        return self._server.models_directory / _hash(target_model)

    async def _post_load(self, target_model: str, url: str) -> _Answer:
        return await self._call(
            "POST", "/models", target_model, {"model_name": _hash(target_model), "url": url}
        )

    async def _unload_oldest(self, keep: str | None = None) -> bool:
        """Unload the least recently used idle model; return whether there was one."""
        idle = (name for name in self._loaded if name != keep and name not in self._uses)
        oldest = next(idle, None)
        if oldest is None:
            return False
        await self._unload(oldest)
        return True

    async def _unload(self, target_model: str) -> None:
        del self._loaded[target_model]
        # Without the header of the load request the server waits 350 s and unloads nothing.
        await self._call("DELETE", f"/models/{_hash(target_model)}", target_model, None)

    async def _shrink(self, keep: str) -> None:
        while await asyncio.to_thread(self._server.memory_bytes) > self._memory_limit_bytes:
            if not await self._unload_oldest(keep):
                return

    async def _call(self, method: str, path: str, target_model: str, body: object) -> _Answer:
        headers = {TARGET_MODEL_HEADER: target_model}
        try:
            async with self._server.session.request(
                method, self._server.url + path, json=body, headers=headers, timeout=_LOAD_TIMEOUT
            ) as response:
                return _Answer(response.status, await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise model_error(
                self._endpoint, 0, f"{type(error).__name__}: the container did not answer"
            ) from error


def _hash(target_model: str) -> str:
    """Return a name for the model's folder.

    The server accepts only letters, digits, dots and underscores.
    """
    return blake2b(target_model.encode(), digest_size=16).hexdigest()
